"""Training steps of a perceptron in PyTorch."""
import common

o = common.options("net", "steps")
torch = common.need("torch")

torch.set_num_threads(o.threads)
layers = [torch.nn.Parameter(torch.from_numpy(v)) for pair in common.net_values(o.net) for v in pair]
x, y = (torch.from_numpy(v) for v in common.net_feeds(o.net))
optimizer = torch.optim.SGD(layers, lr=.01)


def loss():
    h = x
    for i in range(0, len(layers), 2):
        h = torch.addmm(layers[i + 1], h, layers[i])
        if i < len(layers) - 2:
            h = torch.relu(h)
    return torch.nn.functional.cross_entropy(h, y)


def step():
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


r = common.train(step, o.steps)
with torch.no_grad():
    last = loss().item()
common.report_net(r, o, last)
