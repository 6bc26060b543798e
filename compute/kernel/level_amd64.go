package kernel

import "golang.org/x/sys/cpu"

// supported is the best level of this CPU.
func supported() Level {
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX2 && x.HasFMA && x.HasBMI2:
		return AVX512
	case x.HasAVX2 && x.HasFMA:
		return AVX2
	}
	return Plain
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
	tiles: &tileSet{lanes: 16, rows: []int{12, 8, 4, 2, 1}, fn: [2][]tileFunc{
		{tileAVX512_12x1, tileAVX512_8x1, tileAVX512_4x1, tileAVX512_2x1, tileAVX512_1x1},
		{tileAVX512_12x2, tileAVX512_8x2, tileAVX512_4x2, tileAVX512_2x2, tileAVX512_1x2},
	}, pack: [2]packFunc{packAVX512_32, packAVX512_12}, few: fewAVX512, fewTA: fewTAAVX512},
	sums: &sumSet{lanes: 16,
		segment: []segmentFunc{segmentSumAVX512_1, segmentSumAVX512_2, segmentSumAVX512_3,
			segmentSumAVX512_4, segmentSumAVX512_5, segmentSumAVX512_6, segmentSumAVX512_7,
			segmentSumAVX512_8, segmentSumAVX512_9, segmentSumAVX512_10, segmentSumAVX512_11,
			segmentSumAVX512_12, segmentSumAVX512_13, segmentSumAVX512_14, segmentSumAVX512_15,
			segmentSumAVX512_16},
		weighted: []weightedFunc{weightedSumAVX512_1, weightedSumAVX512_2, weightedSumAVX512_3,
			weightedSumAVX512_4, weightedSumAVX512_5, weightedSumAVX512_6, weightedSumAVX512_7,
			weightedSumAVX512_8, weightedSumAVX512_9, weightedSumAVX512_10,
			weightedSumAVX512_11, weightedSumAVX512_12, weightedSumAVX512_13,
			weightedSumAVX512_14, weightedSumAVX512_15, weightedSumAVX512_16},
		column: []columnFunc{columnSumAVX512_1, columnSumAVX512_2, columnSumAVX512_3,
			columnSumAVX512_4, columnSumAVX512_5, columnSumAVX512_6, columnSumAVX512_7,
			columnSumAVX512_8, columnSumAVX512_9, columnSumAVX512_10, columnSumAVX512_11,
			columnSumAVX512_12, columnSumAVX512_13, columnSumAVX512_14, columnSumAVX512_15,
			columnSumAVX512_16},
		edgeSum: []edgeFunc{edgeSumAVX512_1, edgeSumAVX512_2, edgeSumAVX512_3, edgeSumAVX512_4,
			edgeSumAVX512_5, edgeSumAVX512_6, edgeSumAVX512_7, edgeSumAVX512_8, edgeSumAVX512_9,
			edgeSumAVX512_10, edgeSumAVX512_11, edgeSumAVX512_12, edgeSumAVX512_13,
			edgeSumAVX512_14, edgeSumAVX512_15, edgeSumAVX512_16},
		edgeDot: []edgeFunc{edgeDotAVX512_1, edgeDotAVX512_2, edgeDotAVX512_3, edgeDotAVX512_4,
			edgeDotAVX512_5, edgeDotAVX512_6, edgeDotAVX512_7, edgeDotAVX512_8, edgeDotAVX512_9,
			edgeDotAVX512_10, edgeDotAVX512_11, edgeDotAVX512_12, edgeDotAVX512_13,
			edgeDotAVX512_14, edgeDotAVX512_15, edgeDotAVX512_16},
		score: []scoreFunc{edgeScoreAVX512_1, edgeScoreAVX512_2, edgeScoreAVX512_3,
			edgeScoreAVX512_4, edgeScoreAVX512_5, edgeScoreAVX512_6, edgeScoreAVX512_7,
			edgeScoreAVX512_8},
		scoreGrad: []scoreFunc{edgeScoreGradAVX512_1, edgeScoreGradAVX512_2,
			edgeScoreGradAVX512_3, edgeScoreGradAVX512_4, edgeScoreGradAVX512_5,
			edgeScoreGradAVX512_6},
		scoreOwnGrad: []scoreFunc{edgeScoreOwnGradAVX512_1, edgeScoreOwnGradAVX512_2,
			edgeScoreOwnGradAVX512_3, edgeScoreOwnGradAVX512_4, edgeScoreOwnGradAVX512_5,
			edgeScoreOwnGradAVX512_6},
		max: []maxFunc{segmentMaxAVX512_1, segmentMaxAVX512_2, segmentMaxAVX512_3,
			segmentMaxAVX512_4, segmentMaxAVX512_5, segmentMaxAVX512_6, segmentMaxAVX512_7,
			segmentMaxAVX512_8, segmentMaxAVX512_9, segmentMaxAVX512_10, segmentMaxAVX512_11,
			segmentMaxAVX512_12},
		maxGrad: []maxGradFunc{segmentMaxGradAVX512_1, segmentMaxGradAVX512_2,
			segmentMaxGradAVX512_3, segmentMaxGradAVX512_4, segmentMaxGradAVX512_5,
			segmentMaxGradAVX512_6, segmentMaxGradAVX512_7, segmentMaxGradAVX512_8,
			segmentMaxGradAVX512_9, segmentMaxGradAVX512_10, segmentMaxGradAVX512_11,
			segmentMaxGradAVX512_12, segmentMaxGradAVX512_13, segmentMaxGradAVX512_14,
			segmentMaxGradAVX512_15, segmentMaxGradAVX512_16},
	},
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
	product: productAVX512, addCube: addCubeAVX512, dot: dotAVX512, manhattan: manhattanAVX512,
	manhattanGrad: manhattanGradAVX512, modulus: modulusAVX512, modulusGrad: modulusGradAVX512,
}

var avx2Ops = ops{
	tiles: &tileSet{lanes: 8, rows: []int{6, 4, 2, 1}, fn: [2][]tileFunc{
		{tileAVX2_6x1, tileAVX2_4x1, tileAVX2_2x1, tileAVX2_1x1},
		{tileAVX2_6x2, tileAVX2_4x2, tileAVX2_2x2, tileAVX2_1x2},
	}, pack: [2]packFunc{packAVX2_16, packAVX2_6}, few: fewAVX2, fewTA: fewTAAVX2},
	sums: &sumSet{lanes: 8,
		segment: []segmentFunc{segmentSumAVX2_1, segmentSumAVX2_2, segmentSumAVX2_3,
			segmentSumAVX2_4, segmentSumAVX2_5, segmentSumAVX2_6, segmentSumAVX2_7,
			segmentSumAVX2_8, segmentSumAVX2_9, segmentSumAVX2_10, segmentSumAVX2_11,
			segmentSumAVX2_12},
		weighted: []weightedFunc{weightedSumAVX2_1, weightedSumAVX2_2, weightedSumAVX2_3,
			weightedSumAVX2_4, weightedSumAVX2_5, weightedSumAVX2_6, weightedSumAVX2_7,
			weightedSumAVX2_8, weightedSumAVX2_9, weightedSumAVX2_10, weightedSumAVX2_11,
			weightedSumAVX2_12},
		column: []columnFunc{columnSumAVX2_1, columnSumAVX2_2, columnSumAVX2_3, columnSumAVX2_4,
			columnSumAVX2_5, columnSumAVX2_6, columnSumAVX2_7, columnSumAVX2_8, columnSumAVX2_9,
			columnSumAVX2_10, columnSumAVX2_11, columnSumAVX2_12},
		edgeSum: []edgeFunc{edgeSumAVX2_1, edgeSumAVX2_2, edgeSumAVX2_3, edgeSumAVX2_4,
			edgeSumAVX2_5, edgeSumAVX2_6, edgeSumAVX2_7, edgeSumAVX2_8},
		edgeDot: []edgeFunc{edgeDotAVX2_1, edgeDotAVX2_2, edgeDotAVX2_3, edgeDotAVX2_4,
			edgeDotAVX2_5, edgeDotAVX2_6, edgeDotAVX2_7, edgeDotAVX2_8},
		score:        []scoreFunc{edgeScoreAVX2_1, edgeScoreAVX2_2, edgeScoreAVX2_3},
		scoreGrad:    []scoreFunc{edgeScoreGradAVX2_1, edgeScoreGradAVX2_2},
		scoreOwnGrad: []scoreFunc{edgeScoreOwnGradAVX2_1, edgeScoreOwnGradAVX2_2},
		max: []maxFunc{segmentMaxAVX2_1, segmentMaxAVX2_2, segmentMaxAVX2_3, segmentMaxAVX2_4,
			segmentMaxAVX2_5},
		maxGrad: []maxGradFunc{segmentMaxGradAVX2_1, segmentMaxGradAVX2_2,
			segmentMaxGradAVX2_3, segmentMaxGradAVX2_4, segmentMaxGradAVX2_5, segmentMaxGradAVX2_6,
			segmentMaxGradAVX2_7, segmentMaxGradAVX2_8},
	},
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
	product: productAVX2, addCube: addCubeAVX2, dot: dotAVX2, manhattan: manhattanAVX2,
	manhattanGrad: manhattanGradAVX2, modulus: modulusAVX2, modulusGrad: modulusGradAVX2,
}
