"""Workers of joblib and of Dask, processes that find each other by sockets; Numba compiles code."""

import logging
import os
import warnings

import joblib
import numba
import numpy
import sklearn
from dask.distributed import Client
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier


@numba.njit(cache=True)
def total(numbers):
    found = 0.0
    for number in numbers:
        found += number * number
    return found


def where(number):
    return number * number, sklearn.__file__, os.path.basename(os.getcwd())


def main():
    warnings.simplefilter("ignore")
    print("total", total(numpy.arange(1000.0)), len(os.listdir(os.environ["NUMBA_CACHE_DIR"])))
    samples, kinds = load_iris(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0, n_jobs=2).fit(samples, kinds)
    print(round(forest.score(samples, kinds), 3))
    print(joblib.Parallel(n_jobs=2)(joblib.delayed(where)(number) for number in range(4)))
    quiet = {"silence_logs": logging.CRITICAL, "dashboard_address": None}  # logs say what was slow
    with Client(n_workers=2, threads_per_worker=1, **quiet) as client:
        print(client.gather(client.map(where, range(4))))


if __name__ == "__main__":
    main()
