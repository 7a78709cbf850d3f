"""kazoo's own tests of SASL, without those of Kerberos.

usage: kazoo_own.py HOST:PORT
"""
import sys

import kazoo.testing.harness
import pytest


class Server:
    running = True
    address = sys.argv[1]


kazoo.testing.harness.get_global_cluster = lambda: [Server]


class Outcomes:
    passed = other = 0

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.passed += 1
        elif not report.passed:
            self.other += 1


outcomes = Outcomes()
pytest.main(["-q", "-p", "no:cacheprovider", "-k", "Digest", "--pyargs", "kazoo.tests.test_sasl"], plugins=[outcomes])
if (outcomes.passed, outcomes.other) != (4, 0):
    sys.exit("of 4 tests, %d passed" % outcomes.passed)
print("ok")
