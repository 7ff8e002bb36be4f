// One step of gradient descent on XOR: 4x2 @ 2x8, ReLU, 8x1, sigmoid, mean squared error.
// Gives the four new parameters and the loss before the step.
module @sheaf {
  func.func @main(%w1: tensor<2x8xf32>, %b1: tensor<8xf32>, %w2: tensor<8x1xf32>, %b2: tensor<1xf32>,
                  %x: tensor<4x2xf32>, %y: tensor<4x1xf32>, %rate: tensor<f32>)
      -> (tensor<2x8xf32>, tensor<8xf32>, tensor<8x1xf32>, tensor<1xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %quarter = stablehlo.constant dense<0.25> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %halves = stablehlo.constant dense<0.5> : tensor<4x1xf32>
    %ones = stablehlo.constant dense<1.0> : tensor<4x1xf32>

    // Forward.
    %xw = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
      : (tensor<4x2xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
    %b1s = stablehlo.broadcast_in_dim %b1, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %pre = stablehlo.add %xw, %b1s : tensor<4x8xf32>
    %h = stablehlo.maximum %pre, %zeros : tensor<4x8xf32>
    %hw = stablehlo.dot_general %h, %w2, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x1xf32>) -> tensor<4x1xf32>
    %b2s = stablehlo.broadcast_in_dim %b2, dims = [1] : (tensor<1xf32>) -> tensor<4x1xf32>
    %logit = stablehlo.add %hw, %b2s : tensor<4x1xf32>
    %p = stablehlo.logistic %logit : tensor<4x1xf32>
    %miss = stablehlo.subtract %p, %y : tensor<4x1xf32>
    %squares = stablehlo.multiply %miss, %miss : tensor<4x1xf32>
    %sum = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %loss = stablehlo.multiply %sum, %quarter : tensor<f32>

    // Backward.
    %dp = stablehlo.multiply %miss, %halves : tensor<4x1xf32>
    %q = stablehlo.subtract %ones, %p : tensor<4x1xf32>
    %pq = stablehlo.multiply %p, %q : tensor<4x1xf32>
    %dlogit = stablehlo.multiply %dp, %pq : tensor<4x1xf32>
    %dw2 = stablehlo.dot_general %h, %dlogit, contracting_dims = [0] x [0]
      : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<8x1xf32>
    %db2 = stablehlo.reduce(%dlogit init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4x1xf32>, tensor<f32>) -> tensor<1xf32>
    %dh = stablehlo.dot_general %dlogit, %w2, contracting_dims = [1] x [1]
      : (tensor<4x1xf32>, tensor<8x1xf32>) -> tensor<4x8xf32>
    %alive = stablehlo.compare GT, %pre, %zeros : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %dpre = stablehlo.select %alive, %dh, %zeros : tensor<4x8xi1>, tensor<4x8xf32>
    %dw1 = stablehlo.dot_general %x, %dpre, contracting_dims = [0] x [0]
      : (tensor<4x2xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %db1 = stablehlo.reduce(%dpre init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>

    // Descent.
    %r1 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %r2 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %r3 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<8x1xf32>
    %r4 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %s1 = stablehlo.multiply %r1, %dw1 : tensor<2x8xf32>
    %s2 = stablehlo.multiply %r2, %db1 : tensor<8xf32>
    %s3 = stablehlo.multiply %r3, %dw2 : tensor<8x1xf32>
    %s4 = stablehlo.multiply %r4, %db2 : tensor<1xf32>
    %n1 = stablehlo.subtract %w1, %s1 : tensor<2x8xf32>
    %n2 = stablehlo.subtract %b1, %s2 : tensor<8xf32>
    %n3 = stablehlo.subtract %w2, %s3 : tensor<8x1xf32>
    %n4 = stablehlo.subtract %b2, %s4 : tensor<1xf32>
    return %n1, %n2, %n3, %n4, %loss
      : tensor<2x8xf32>, tensor<8xf32>, tensor<8x1xf32>, tensor<1xf32>, tensor<f32>
  }
}
