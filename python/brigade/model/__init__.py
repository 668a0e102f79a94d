"""Seconds and operations of a start-up at any width: demand, system, three solvers.

Plain Python without NumPy; nothing here does I/O but `system.load` and `demand.load`.
"""
