import subprocess
import sys


def test_storage_and_report_need_neither_torch_nor_pyarrow():
    code = (
        "import sys, dualrs.storage, dualrs.report; "
        "print(*{'torch', 'pyarrow', 'pydantic', 'pandas', 'scipy.stats'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
