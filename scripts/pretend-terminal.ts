import { syncBuiltinESMExports } from "node:module";
import { PassThrough } from "node:stream";
import tty from "node:tty";

// Loaded before a kcore that is warmed up (scripts/warm-up.ts): a terminal for its view. The run's own process inherits
// the loaded modules, but takes the view's answers by its stdin.
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
