import { syncBuiltinESMExports } from "node:module";
import { PassThrough } from "node:stream";
import tty from "node:tty";

// Pretends a terminal for the view of a kcore process that scripts/warm-up.ts starts with `--import` of this file. The
// run's process inherits the flag, but keeps its real stdin, which brings the passphrase, and for a prepared process the run.
if (!process.argv[1]?.endsWith("run-main.js")) {
  tty.isatty = () => true;
  syncBuiltinESMExports();
  const stdin = new PassThrough();
  Object.defineProperty(process, "stdin", {
    value: Object.assign(stdin, { isTTY: true, setRawMode: () => stdin, ref: () => stdin, unref: () => stdin }),
  });
  const stdout = new PassThrough().resume();
  Object.defineProperty(process, "stdout", {
    value: Object.assign(stdout, {
      isTTY: true,
      columns: 160,
      rows: 48,
      fd: 2,
      getColorDepth: () => 24,
      hasColors: () => true,
    }),
  });
}
