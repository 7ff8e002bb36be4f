"""A variational autoencoder: handwritten digits as 8 numbers, and digits that no hand has written."""

import sys

import torch
import torch.nn as nn

from data import draw, loader, test_x, train_x

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
latent = 8
deviation = 0.2


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, 64), nn.Sigmoid())

    def encode(self, images):
        return self.encoder(images).chunk(2, dim=1)

    def decode(self, z):
        return self.decoder(z)


def pixel_cost(guess, images):
    return ((guess - images) ** 2 / (2 * deviation**2)).sum(dim=-1).mean()


def loss_fn(model, images):
    mu, log_var = model.encode(images)
    z = mu + (log_var / 2).exp() * torch.randn_like(mu)
    divergence = 0.5 * (mu**2 + log_var.exp() - log_var - 1).sum(dim=1)
    return pixel_cost(model.decode(z), images) + divergence.mean()


@torch.no_grad()
def test_loss(model):
    model.eval()
    return loss_fn(model, test_x).item()


def train(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    for epoch in range(epochs):
        model.train()
        for images, _ in loader(48):
            optimizer.zero_grad()
            loss_fn(model, images).backward()
            optimizer.step()
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3d}  test loss {test_loss(model):.2f}")


if __name__ == "__main__":
    model = VAE()
    before = test_loss(model)
    train(model)
    after = test_loss(model)
    average = pixel_cost(train_x.mean(dim=0), test_x).item()
    with torch.no_grad():
        some = test_x[:8]
        print("test images:")
        draw(some)
        print("the same out of 8 numbers:")
        draw(model.decode(model.encode(some)[0]))
        print("new ones:")
        draw(model.decode(torch.randn(8, latent)))
    print(f"nats per image: {after:.1f} trained, {before:.1f} untrained, {average:.1f} for the average image")
    assert after < min(before, average), "the network has learned nothing"
