// quirk 13: a stable sort puts equal keys in another order
// fails: numbers
// argument: i32[8] 1 0 1 0 1 0 1 0
// argument: i32[8] 0 1 2 3 4 5 6 7
// right: i32[8] 0 0 0 0 1 1 1 1
// right: i32[8] 1 3 5 7 0 2 4 6
module @sheaf {
  func.func @main(%x: tensor<8xi32>, %y: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
    %0, %1 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
        %p = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
    }) : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
    return %0, %1 : tensor<8xi32>, tensor<8xi32>
  }
}
