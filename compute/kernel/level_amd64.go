package kernel

import "golang.org/x/sys/cpu"

// supported returns the levels of this CPU, the best one last.
func supported() []Level {
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX2 && x.HasFMA && x.HasBMI2:
		return []Level{Plain, AVX2, AVX512}
	case x.HasAVX2 && x.HasFMA:
		return []Level{Plain, AVX2}
	}
	return []Level{Plain}
}

// opsOf returns the parts of a level that the CPU supports.
func opsOf(l Level) *ops {
	switch l {
	case AVX512:
		return &avx512Ops
	case AVX2:
		return &avx2Ops
	}
	return &plainOps
}

var avx512Ops = ops{
	tiles: &tileSet{lanes: 16, rows: []int{12, 8, 4, 2, 1}, fetches: 1, fn: tileAVX512,
		pack: [2]packFunc{packAVX512_32, packAVX512_12}, few: fewAVX512, fewTA: fewTAAVX512},
	sums: &sumSet{lanes: 16,
		segment: segmentSumAVX512, weighted: weightedSumAVX512, column: columnSumAVX512,
		edgeSum: edgeSumAVX512, edgeDot: edgeDotAVX512, score: edgeScoreAVX512,
		scoreGrad: edgeScoreGradAVX512, scoreOwnGrad: edgeScoreOwnGradAVX512,
		max: segmentMaxAVX512, maxGrad: segmentMaxGradAVX512},
	links: &linkSet{productGrad: productGrad, scores: pairScores, grads: pairGrads,
		gradsOwn: pairGradsOwn, adagradRows: adagradRows},
	bias: biasAVX512, biasReLU: biasReLUAVX512, reluGrad: reluGradAVX512,
	dropout: func(y []float32, d *DropoutPlan, first uint32) { dropoutAVX512(y, &d.add, first) },
	add:     addAVX512, scale: scaleAVX512, rowMax: rowMaxAVX512, expSum: expSumAVX512,
	adam: func(w, g, m, v []float32, c *adamPlan) { adamAVX512(w, g, m, v, &c.l2) },
	sgd:  sgdAVX512, adagrad: adagradAVX512,
	times: timesAVX512, addScaled: addScaledAVX512, leaky: leakyAVX512, leakyGrad: leakyGradAVX512,
	elu: eluAVX512, eluGrad: eluGradAVX512, gelu: geluAVX512, geluGrad: geluGradAVX512,
	edgeScores: quadEdgeScores, subtractMax: quadSubtractMax, divideSum: quadDivideSum,
	edgeToDst: quadEdgeToDst, edgeToSrc: quadEdgeToSrc,
	sum: sumAVX512, squares: squaresAVX512, normRow: normRowAVX512, layerSums: layerSumsAVX512,
	layerGrad: layerGradAVX512, addSquares: addSquaresAVX512, normColumns: normColumnsAVX512,
	batchSums: batchSumsAVX512, batchGrad: batchGradAVX512,
	prefetch: prefetchRows,
	product:  productAVX512, addCube: addCubeAVX512, dot: dotAVX512, manhattan: manhattanAVX512,
	manhattanGrad: manhattanGradAVX512, modulus: modulusAVX512, modulusGrad: modulusGradAVX512,
}

var avx2Ops = ops{
	tiles: &tileSet{lanes: 8, rows: []int{6, 4, 2, 1}, fetches: 4, fn: tileAVX2,
		pack: [2]packFunc{packAVX2_16, packAVX2_6}, few: fewAVX2, fewTA: fewTAAVX2},
	sums: &sumSet{lanes: 8,
		segment: segmentSumAVX2, weighted: weightedSumAVX2, column: columnSumAVX2,
		edgeSum: edgeSumAVX2, edgeDot: edgeDotAVX2, score: edgeScoreAVX2,
		scoreGrad: edgeScoreGradAVX2, scoreOwnGrad: edgeScoreOwnGradAVX2,
		max: segmentMaxAVX2, maxGrad: segmentMaxGradAVX2},
	bias: biasAVX2, biasReLU: biasReLUAVX2, reluGrad: reluGradAVX2,
	dropout: func(y []float32, d *DropoutPlan, first uint32) { dropoutAVX2(y, &d.add, first) },
	add:     addAVX2, scale: scaleAVX2, rowMax: rowMaxAVX2, expSum: expSumAVX2,
	adam: func(w, g, m, v []float32, c *adamPlan) { adamAVX2(w, g, m, v, &c.l2) },
	sgd:  sgdAVX2, adagrad: adagradAVX2,
	times: timesAVX2, addScaled: addScaledAVX2, leaky: leakyAVX2, leakyGrad: leakyGradAVX2,
	elu: eluAVX2, eluGrad: eluGradAVX2, gelu: geluAVX2, geluGrad: geluGradAVX2,
	edgeScores: quadEdgeScores, subtractMax: quadSubtractMax, divideSum: quadDivideSum,
	edgeToDst: quadEdgeToDst, edgeToSrc: quadEdgeToSrc,
	sum: sumAVX2, squares: squaresAVX2, normRow: normRowAVX2, layerSums: layerSumsAVX2,
	layerGrad: layerGradAVX2, addSquares: addSquaresAVX2, normColumns: normColumnsAVX2,
	batchSums: batchSumsAVX2, batchGrad: batchGradAVX2,
	prefetch: prefetchRows,
	product:  productAVX2, addCube: addCubeAVX2, dot: dotAVX2, manhattan: manhattanAVX2,
	manhattanGrad: manhattanGradAVX2, modulus: modulusAVX2, modulusGrad: modulusGradAVX2,
}
