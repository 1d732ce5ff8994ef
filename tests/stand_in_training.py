"""What a sweep sees of a training, in a tenth of a second: files, signals and an exit status.

    ZHEN_RUN_ID=ID python tests/stand_in_training.py runs=FOLDER x=SCORE [KEY=VALUE...]

It is validated four times, each time with a better score, up to SCORE. `status` is how it ends,
`slow` the seconds that it takes after its second validation, where it sends `signal` to its parent.
"""

import os
import signal
import sys
import time
from pathlib import Path

words = dict(word.split("=", 1) for word in sys.argv[1:])
run = Path(words["runs"], os.environ["ZHEN_RUN_ID"])
run.mkdir(exist_ok=True)
begun = run / "begun.txt"
state = run / "state.txt"


def stop(number: int, frame: object) -> None:
    sys.exit(128 + number)


for each in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(each, stop)

with begun.open("a") as file:
    print(os.environ["ZHEN_SWEEP"], *sys.argv[1:], file=file)
(run / "pid.txt").write_text(str(os.getpid()))
(run / "config.yaml").touch()
metrics = run / "metrics.csv"
if not metrics.exists():
    metrics.write_text("step,val/bleu,train/loss\n")
done = int(state.read_text()) if state.exists() else 0
for number in range(done, 4):
    with metrics.open("a") as file:
        file.write(f"{10 * number},,1.5\n{10 * number},{float(words['x']) * (number + 1) / 4},\n")
    state.write_text(str(number + 1))
    if number == 1 and "signal" in words:
        os.kill(os.getppid(), int(words["signal"]))
        time.sleep(60)
    if number == 1:
        time.sleep(float(words.get("slow", 0)))
status = int(words.get("status", 0))
if status == 0:
    (run / "results.json").write_text("{}")
sys.exit(status)
