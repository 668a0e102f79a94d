"""SciPy, pandas and Matplotlib: a fit, a table, a picture."""

import hashlib
import io
import sys

import matplotlib
import numpy
import pandas
import scipy
import scipy.optimize
import scipy.stats

matplotlib.use("Agg")
import matplotlib.pyplot

x = numpy.linspace(0, 1, 50)
fit, _ = scipy.optimize.curve_fit(lambda x, a, b: a * x + b, x, 3 * x + 1)
print(fit.round(6), scipy.stats.norm.cdf(1.0).round(6))
print(pandas.DataFrame({"x": x, "y": x**2}).describe().round(4))
matplotlib.pyplot.plot(x, x**2)
picture = io.BytesIO()
matplotlib.pyplot.savefig(picture, format="raw")
print(hashlib.sha1(picture.getvalue()).hexdigest())
for module in (matplotlib, numpy, pandas, scipy):
    print(module.__version__, module.__file__)
print("modules", len(sys.modules), sorted(sys.modules) == sorted(set(sys.modules)))
