import { FakeTerminal } from "#support/fake-terminal.ts";

// Loaded before a kcore that is warmed up (scripts/warm-up.ts): its view takes this for the terminal it was started in.
// The run's own process, which inherits what is loaded, hears by its stdin what the view hands over.
if (!process.argv[1]?.endsWith("run-main.js")) {
  const terminal = new FakeTerminal(160, 48);
  const stdout = Object.assign(terminal, { fd: 2, getColorDepth: () => 24, hasColors: () => true });
  Object.defineProperty(process, "stdin", { value: terminal.stdin });
  Object.defineProperty(process, "stdout", { value: stdout });
}
