package model_test

import (
	"fmt"

	"gdb/train/model"
)

// ExampleFind counts the parameters of two layers before any memory is taken for them.
func ExampleFind() {
	sage, err := model.Find("sage")
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := model.Spec{Architecture: sage, Dims: []int{128, 64, 10}}
	fmt.Println(spec.Params(), "values")
	_, err = model.Find("sagee")
	fmt.Println(err)
	// Output:
	// 17738 values
	// unknown model "sagee"; known: sage, gcn, gat, gatv2, gin, sgc, mlp, rgcn, hsage, hgt, rgat
}
