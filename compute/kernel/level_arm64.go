package kernel

// supported returns the levels of this CPU: every arm64 processor has NEON.
func supported() []Level { return []Level{Plain, NEON} }

// opsOf returns the parts of a level that the CPU supports.
func opsOf(l Level) *ops {
	if l == NEON {
		return &neonOps
	}
	return &plainOps
}

var neonOps = ops{
	tiles: &tileSet{lanes: 4, rows: []int{8, 4, 2, 1}, fetches: 4, fn: tileNEON,
		pack: [2]packFunc{packNEON, packNEON}, few: fewNEON, fewTA: fewTANEON},
	sums: &sumSet{lanes: 4,
		segment: segmentSumNEON, weighted: weightedSumNEON, column: columnSumNEON,
		edgeSum: edgeSumNEON, edgeDot: edgeDotNEON, score: edgeScoreNEON,
		scoreGrad: edgeScoreGradNEON, scoreOwnGrad: edgeScoreOwnGradNEON,
		max: segmentMaxNEON, maxGrad: segmentMaxGradNEON},
	bias: biasNEON, biasReLU: biasReLUNEON, reluGrad: reluGradNEON,
	dropout: func(y []float32, d *DropoutPlan, first uint32) { dropoutNEON(y, &d.add, first) },
	add:     addNEON, scale: scaleNEON, rowMax: rowMaxNEON, expSum: expSumNEON,
	adam: func(w, g, m, v []float32, c *adamPlan) { adamNEON(w, g, m, v, &c.l2) },
	sgd:  sgdNEON, adagrad: adagradNEON,
	times: timesNEON, addScaled: addScaledNEON, leaky: leakyNEON, leakyGrad: leakyGradNEON,
	elu: eluNEON, eluGrad: eluGradNEON, gelu: geluNEON, geluGrad: geluGradNEON,
	edgeScores: quadEdgeScores, subtractMax: quadSubtractMax, divideSum: quadDivideSum,
	edgeToDst: quadEdgeToDst, edgeToSrc: quadEdgeToSrc,
	sum: sumNEON, squares: squaresNEON, normRow: normRowNEON, layerSums: layerSumsNEON,
	layerGrad: layerGradNEON, addSquares: addSquaresNEON, normColumns: normColumnsNEON,
	batchSums: batchSumsNEON, batchGrad: batchGradNEON,
	prefetch: prefetchRowsNEON,
	product:  productNEON, addCube: addCubeNEON, dot: dotNEON, manhattan: manhattanNEON,
	manhattanGrad: manhattanGradNEON, modulus: modulusNEON, modulusGrad: modulusGradNEON,
}
