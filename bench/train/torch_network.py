"""Training steps of a whole network as one writes it in PyTorch: the layers, shapes, optimizer and feeds of
make_networks.py, initial values of PyTorch's own. GCN and wide & deep use sparse tensors and embedding bags, as there."""
import json
import os

import common

o = common.options("net", "steps")
torch = common.need("torch")
import numpy as np
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(o.threads)
torch.manual_seed(7)
here = os.path.dirname(os.path.abspath(__file__))


def value(salt, f):
    if not f["limit"]:
        return torch.from_numpy(common.floats(salt, f["scale"], *f["shape"]))
    n = int(np.prod(f["shape"]))
    return torch.from_numpy((common.uniform(n, salt) * f["limit"]).astype(np.int64).reshape(f["shape"]))


described = json.load(open(os.path.join(here, "graphs", "networks.json")))[o.net]
feeds = {f["name"].removesuffix(":0"): value(i + 1, f) for i, f in enumerate(described)}


def minimizer(loss, optimizer, clip=None):
    """A step that minimizes the loss; clip is the largest norm of all gradients together."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def step():
        optimizer.zero_grad()
        loss().backward()
        if clip:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
    return step, loss


class Block(nn.Module):
    def __init__(self, m, n, stride):
        super().__init__()
        self.a, self.b = nn.Conv2d(m, n, 3, stride, 1, bias=False), nn.Conv2d(n, n, 3, 1, 1, bias=False)
        self.norm_a, self.norm_b = nn.BatchNorm2d(n, momentum=.01), nn.BatchNorm2d(n, momentum=.01)
        self.shortcut = nn.Identity() if stride == 1 else nn.Sequential(nn.Conv2d(m, n, 1, stride, bias=False), nn.BatchNorm2d(n, momentum=.01))

    def forward(self, x):
        return F.relu(self.norm_b(self.b(F.relu(self.norm_a(self.a(x))))) + self.shortcut(x))


def resnet20():
    x, y = feeds["x"].permute(0, 3, 1, 2).contiguous(), feeds["y"]
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16, momentum=.01), nn.ReLU()]
    for m, n in (16, 16), (16, 32), (32, 64):
        layers += [Block(m, n, n // m), Block(n, n, 1), Block(n, n, 1)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return minimizer(lambda: F.cross_entropy(model(x), y), torch.optim.SGD(model.parameters(), 1e-4, .9, weight_decay=1e-4))


def lstm():
    x, y, n, vocabulary = feeds["x"], feeds["y"], 200, 10000
    embedding, rnn, out = nn.Embedding(vocabulary, n), nn.LSTM(n, n, 2, batch_first=True), nn.Linear(n, vocabulary)
    parameters = [p for layer in (embedding, rnn, out) for p in layer.parameters()]

    def loss():
        h, _ = rnn(embedding(x))
        return F.cross_entropy(out(h.reshape(-1, n)), y.reshape(-1), reduction="sum") / len(x)
    return minimizer(loss, torch.optim.SGD(parameters, .01), 5)


class Attention(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(n, n) for _ in range(4))

    def forward(self, h, mask):
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=.1)
        return self.out(a.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.attention, self.norm_a, self.norm_b = Attention(n, heads), nn.LayerNorm(n), nn.LayerNorm(n)
        self.wide, self.narrow, self.dropout = nn.Linear(n, 4 * n), nn.Linear(4 * n, n), nn.Dropout(.1)

    def forward(self, h, mask):
        h = self.norm_a(h + self.dropout(self.attention(h, mask)))
        return self.norm_b(h + self.dropout(self.narrow(F.gelu(self.wide(h), approximate="tanh"))))


class Bert(nn.Module):
    def __init__(self, n=128, vocabulary=8000, heads=2):
        super().__init__()
        self.words, self.kinds, self.positions = nn.Embedding(vocabulary, n), nn.Embedding(2, n), nn.Embedding(512, n)
        self.norm, self.dropout = nn.LayerNorm(n), nn.Dropout(.1)
        self.layers = nn.ModuleList(Layer(n, heads) for _ in range(2))
        self.pooler, self.next = nn.Linear(n, n), nn.Linear(n, 2)
        self.transform, self.transform_norm = nn.Linear(n, n), nn.LayerNorm(n)
        self.word_bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, ids, mask, kinds, places):
        h = self.words(ids) + self.kinds(kinds) + self.positions.weight[:ids.shape[1]]
        h, mask = self.dropout(self.norm(h)), ((1. - mask.clamp(max=1)) * -10000.)[:, None, None, :]
        for layer in self.layers:
            h = layer(h, mask)
        m = self.transform_norm(F.gelu(self.transform(h.flatten(0, 1)[places]), approximate="tanh"))
        return self.next(torch.tanh(self.pooler(h[:, 0]))), F.linear(m, self.words.weight, self.word_bias)


def bert():
    model = Bert()

    def loss():
        following, words = model(*(feeds[name] for name in ("ids", "mask", "kinds", "places")))
        return F.cross_entropy(following, feeds["y"]) + F.cross_entropy(words, feeds["words"])
    return minimizer(loss, torch.optim.AdamW(model.parameters(), 1e-5, weight_decay=.01), 1.)


def dcgan():
    images, z = feeds["images"].permute(0, 3, 1, 2).contiguous(), feeds["z"]
    up = dict(kernel_size=5, stride=2, padding=2, output_padding=1)
    down = dict(kernel_size=5, stride=2, padding=2)
    generator = nn.Sequential(nn.Linear(100, 7 * 7 * 128), nn.Unflatten(1, (128, 7, 7)), nn.BatchNorm2d(128), nn.ReLU(),
                              nn.ConvTranspose2d(128, 64, **up), nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 1, **up), nn.Tanh())
    discriminator = nn.Sequential(nn.Conv2d(1, 64, bias=False, **down), nn.LeakyReLU(.2), nn.Conv2d(64, 128, bias=False, **down),
                                  nn.BatchNorm2d(128), nn.LeakyReLU(.2), nn.Flatten(), nn.Linear(128 * 7 * 7, 1))
    adam_d, adam_g = (torch.optim.Adam(m.parameters(), 1e-5, (.5, .999)) for m in (discriminator, generator))

    def against(logits, label):
        return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))

    # Both losses are of one run of the two nets, as in the graph.
    def losses():
        fake = generator(z)
        logits = discriminator(fake)
        return against(discriminator(images), 1.) + against(logits, 0.), against(logits, 1.)

    def step():
        d_loss, g_loss = losses()
        d_grads = torch.autograd.grad(d_loss, list(discriminator.parameters()), retain_graph=True)
        g_grads = torch.autograd.grad(g_loss, list(generator.parameters()))
        for optimizer, model, grads in (adam_d, discriminator, d_grads), (adam_g, generator, g_grads):
            for p, g in zip(model.parameters(), grads):
                p.grad = g
            optimizer.step()
    return step, lambda: sum(losses())


def sparse(name, shape):
    at = torch.stack([feeds[name + "_rows"], feeds[name + "_columns"]])
    return at, feeds[name + "_values"].abs()


def gcn():
    nodes, words, hidden, classes = 2708, 1433, 16, 7
    at, values = sparse("words", [nodes, words])
    links = torch.sparse_coo_tensor(*sparse("links", None), [nodes, nodes]).coalesce()
    w0, w1 = nn.Parameter(torch.randn(words, hidden) * .1), nn.Parameter(torch.randn(hidden, classes) * .3)
    mask = torch.zeros(nodes).index_add_(0, feeds["train_nodes"], torch.ones(140))
    mask /= mask.mean()

    def loss():
        keep = torch.rand(len(values)) < .5
        x = torch.sparse_coo_tensor(at[:, keep], values[keep] * 2., [nodes, words])
        h = F.dropout(F.relu(torch.sparse.mm(links, torch.sparse.mm(x, w0))), .5)
        h = torch.sparse.mm(links, h @ w1)
        return (F.cross_entropy(h, feeds["labels"], reduction="none") * mask).mean() + 2.5e-4 * w0.square().sum()
    return minimizer(loss, torch.optim.Adam([w0, w1], 1e-4))


class WideDeep(nn.Module):
    def __init__(self, columns=8, buckets=1000, width=16):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(buckets, width, sparse=True) for _ in range(columns))
        self.wide = nn.ModuleList(nn.Embedding(buckets, 1, sparse=True) for _ in range(columns))
        self.crossed = nn.ModuleList(nn.Embedding(100000, 1, sparse=True) for _ in range(columns // 2))
        self.bias, sizes = nn.Parameter(torch.zeros(1)), (columns * width + 6, 256, 128, 64)
        self.layers = nn.ModuleList(nn.Linear(m, n) for m, n in zip(sizes, sizes[1:]))
        self.logits = nn.Linear(64, 1)

    def forward(self, ids, numbers):
        h = torch.cat([numbers] + [table(ids[:, i]) for i, table in enumerate(self.tables)], 1)
        wide = self.bias + sum(table(ids[:, i]) for i, table in enumerate(self.wide))
        wide = wide + sum(table((ids[:, 2 * i] * 1009 + ids[:, 2 * i + 1]) % 100000) for i, table in enumerate(self.crossed))
        for layer in self.layers:
            h = F.relu(layer(h))
        return (self.logits(h) + wide)[:, 0]


def wide_deep():
    model, y = WideDeep(), feeds["y"].float()
    return minimizer(lambda: F.binary_cross_entropy_with_logits(model(feeds["ids"], feeds["numbers"]), y),
                     torch.optim.Adagrad(model.parameters(), .001))


NETWORKS = {"resnet20": resnet20, "lstm": lstm, "dynamic_lstm": lstm, "bert": bert, "dcgan": dcgan, "gcn": gcn, "wide_deep": wide_deep}
step, loss = NETWORKS[o.net]()
r = common.train(step, o.steps)
common.report(r, "%s in PyTorch, %d steps, loss %.2f" % (o.net, o.steps, loss().item()))
