// Normalization of rows and of columns, and its gradients.
#include "threads.h"

DEV float inverse_root(float variance, float eps) { return 1 / root(variance + eps); }

// y[i,:] = (x[i,:]-mean)/std*gamma + beta; stats (rows,2) gets the mean of each row and 1/std
KERNEL(layer_norm)(float *y, const float *x, const float *gamma, const float *beta, float *stats,
	   i64 rows, i64 cols, f64 eps) {
	EACH_WARP(i, rows) {
		const float *row = x + i * cols;
		float sum = 0, squares = 0;
		for (i64 c = lane(); c < cols; c += 32) sum += row[c];
		float mean = warp_sum(sum) / (float)cols;
		for (i64 c = lane(); c < cols; c += 32) squares += (row[c] - mean) * (row[c] - mean);
		float inverse = inverse_root(warp_sum(squares) / (float)cols, (float)eps);
		if (lane() == 0) {
			stats[2 * i] = mean;
			stats[2 * i + 1] = inverse;
		}
		for (i64 c = lane(); c < cols; c += 32)
			y[i * cols + c] = (row[c] - mean) * inverse * gamma[c] + beta[c];
	}
}

// dx is the gradient of that in x; it may be dy
KERNEL(layer_norm_grad)(float *dx, const float *dy, const float *x, const float *gamma,
	   const float *stats, i64 rows, i64 cols) {
	EACH_WARP(i, rows) {
		const float *row = x + i * cols, *grad = dy + i * cols;
		float mean = stats[2 * i], inverse = stats[2 * i + 1], plain = 0, scaled = 0;
		for (i64 c = lane(); c < cols; c += 32) {
			float g = grad[c] * gamma[c];
			plain += g;
			scaled += g * ((row[c] - mean) * inverse);
		}
		plain = warp_sum(plain) / (float)cols;
		scaled = warp_sum(scaled) / (float)cols;
		for (i64 c = lane(); c < cols; c += 32)
			dx[i * cols + c] =
				inverse * (grad[c] * gamma[c] - plain - (row[c] - mean) * inverse * scaled);
	}
}

// v becomes 1/√(v/rows+eps)
KERNEL(inverse_deviation)(float *v, i64 cols, i64 rows, f64 eps) {
	EACH(c, cols) v[c] = inverse_root(v[c] / (float)rows, (float)eps);
}

// y = (x-mean)*gamma*inverse + beta, column by column. With variances, inverse has these.
KERNEL(norm_columns)(float *y, const float *x, const float *gamma, const float *beta,
	   const float *mean, const float *inverse, i64 rows, i64 cols, i64 variances, f64 eps) {
	EACH(i, rows *cols) {
		i64 c = i % cols;
		float f = variances ? inverse_root(inverse[c], (float)eps) : inverse[c];
		y[i] = (x[i] - mean[c]) * (gamma[c] * f) + beta[c];
	}
}

// dx is the gradient in x of the norm of columns, given those of gamma and beta; it may be dy
KERNEL(batch_norm_grad)(float *dx, const float *dy, const float *x, const float *gamma,
	   const float *stats, const float *dgamma, const float *dbeta, i64 rows, i64 cols) {
	EACH(i, rows *cols) {
		i64 c = i % cols;
		float inverse = stats[cols + c], a = gamma[c] * inverse;
		float b = a * inverse * dgamma[c] / (float)rows, d = a * dbeta[c] / (float)rows;
		dx[i] = a * dy[i] - b * (x[i] - stats[c]) - d;
	}
}

// running (2,cols) moves by share towards the means and the variances of so many rows, whose means
// and 1/std stats has
KERNEL(track_norm)(float *running, const float *stats, i64 cols, i64 rows, f64 share, f64 eps) {
	EACH(c, cols) {
		float inverse = stats[cols + c], variance = 1 / (inverse * inverse) - (float)eps;
		variance *= (float)rows / (float)(rows - 1);
		variance = variance > 0 ? variance : 0;
		running[c] += (float)share * (stats[c] - running[c]);
		running[cols + c] += (float)share * (variance - running[cols + c]);
	}
}
