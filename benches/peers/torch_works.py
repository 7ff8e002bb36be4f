"""The works of peers.py in PyTorch: for each, a step and the state that it starts from."""

import torch
from torch.nn import functional as F

normal = torch.randn


def descent(loss, *data):
    """A step of gradient descent."""

    def step(p):
        p = [v.detach().requires_grad_() for v in p]
        gradients = torch.autograd.grad(loss(p, *data), p)
        with torch.no_grad():
            return [v - 0.1 * g for v, g in zip(p, gradients, strict=True)]

    return step


def product():
    a, b = normal(1024, 1024), normal(1024, 1024)
    return lambda _: a @ b, a


def mlp():
    def loss(p, x, y):
        return F.cross_entropy(F.relu(x @ p[0] + p[1]) @ p[2] + p[3], y)

    p = [0.05 * normal(784, 256), torch.zeros(256), 0.05 * normal(256, 10), torch.zeros(10)]
    return descent(loss, normal(128, 784), torch.randint(0, 10, (128,))), p


def cnn():
    def loss(p, x, y):
        h = F.max_pool2d(F.relu(F.conv2d(x, p[0], padding=1)), 2)
        h = F.max_pool2d(F.relu(F.conv2d(h, p[1], padding=1)), 2)
        return F.cross_entropy(h.flatten(1) @ p[2] + p[3], y)

    p = [0.1 * normal(16, 1, 3, 3), 0.1 * normal(32, 16, 3, 3), 0.05 * normal(1568, 10), torch.zeros(10)]
    return descent(loss, normal(32, 1, 28, 28), torch.randint(0, 10, (32,))), p


def convolution():
    def loss(p, x):
        return F.conv2d(x, p[0], padding=1).square().mean()

    return descent(loss, normal(8, 64, 32, 32)), [0.05 * normal(64, 64, 3, 3)]


def attention():
    def loss(p):
        return F.scaled_dot_product_attention(*p, is_causal=True).square().mean()

    return descent(loss), [0.1 * normal(8, 1024, 64) for _ in range(3)]


def entropy():
    def loss(p, x, y):
        return F.cross_entropy(x @ p[0], y)

    return descent(loss, normal(256, 128), torch.randint(0, 20_000, (256,))), [0.05 * normal(128, 20_000)]


def embedding():
    def loss(p, ids):
        return F.embedding(ids, p[0]).square().mean()

    return descent(loss, torch.randint(0, 20_000, (1024,))), [normal(20_000, 128)]


def sums():
    x = normal(2048, 2048)
    return lambda _: (x.sum(0), x.sum()), x


def sort():
    x = normal(200_000)
    return lambda _: x.sort()[0], x


def top_k():
    x = normal(64, 50_257)
    return lambda _: x.topk(40)[1], x


def elementwise():
    return lambda x: x.tanh().exp(), normal(4_000_000)
