"""Training steps of a perceptron written out in numpy, without temporaries."""
import common

o = common.options("net", "steps")
np = common.need("numpy")

LR = np.float32(.01)
layers = common.net_values(o.net)
x, y = common.net_feeds(o.net)
batch, rows = len(x), np.arange(len(x))
acts = [np.empty((batch, w.shape[1]), np.float32) for w, _ in layers]
grads = [np.empty_like(a) for a in acts]
dws = [np.empty_like(w) for w, _ in layers]


def forward():
    h = x
    for i, (w, b) in enumerate(layers):
        np.dot(h, w, out=acts[i])
        acts[i] += b
        if i < len(layers) - 1:
            np.maximum(acts[i], 0, out=acts[i])
        h = acts[i]
    return h


def softmax(logits, out):
    np.subtract(logits, logits.max(1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(1, keepdims=True)


def loss():
    p = np.empty_like(acts[-1])
    softmax(forward(), p)
    return -np.log(p[rows, y]).mean()


def step():
    g = grads[-1]
    softmax(forward(), g)
    g[rows, y] -= 1
    g /= batch
    for i in range(len(layers) - 1, -1, -1):
        w, b = layers[i]
        below = acts[i - 1] if i else x
        np.dot(below.T, grads[i], out=dws[i])
        db = grads[i].sum(0)
        if i:
            np.dot(grads[i], w.T, out=grads[i - 1])
            grads[i - 1] *= below > 0
        dws[i] *= LR
        w -= dws[i]
        b -= LR * db


common.report_net(common.train(step, o.steps), o, loss())
