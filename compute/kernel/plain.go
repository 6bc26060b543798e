package kernel

var plainOps = ops{
	bias: refBias, biasReLU: refBiasReLU, reluGrad: refReLUGrad, dropout: refDropout,
	add: refAdd, scale: refScale, rowMax: refRowMax, expSum: refExpSum,
	adam: refAdam, sgd: refSGD, adagrad: refAdagrad,
	times: refTimes, addScaled: refAddScaled, leaky: refLeaky, leakyGrad: refLeakyGrad,
	elu: refELU, eluGrad: refELUGrad, gelu: refGELU, geluGrad: refGELUGrad,
	edgeScores: refEdgeScores, subtractMax: refSubtractMax, divideSum: refDivideSum,
	edgeToDst: refEdgeToDst, edgeToSrc: refEdgeToSrc,
	sum: refSum, squares: refSquares, normRow: refNormRow, layerSums: refLayerSums,
	layerGrad: refLayerGrad, addSquares: refAddSquares, normColumns: refNormColumns,
	batchSums: refBatchSums, batchGrad: refBatchGrad,
	product: refProduct, addCube: refAddCube, dot: refDot, manhattan: refManhattan,
	manhattanGrad: refManhattanGrad, modulus: refModulus, modulusGrad: refModulusGrad,
}
