import { writeFileSync, appendFileSync } from "node:fs";

/** `tmux pipe-pane 'node record-pane.ts FILE COLUMNS ROWS TITLE'`: writes a pane's output as an asciicast of version 2. */
const [file = "out.cast", columns = "80", rows = "24", title = ""] = process.argv.slice(2);
const header = { version: 2, width: Number(columns), height: Number(rows), title, env: { TERM: "xterm-256color" } };
writeFileSync(file, `${JSON.stringify(header)}\n`);
const decoder = new TextDecoder("utf-8");
let begun: number | undefined;
let held = "";
let since = 0;

function write(): void {
  if (held === "") return;
  appendFileSync(file, `${JSON.stringify([Number(since.toFixed(2)), "o", held])}\n`);
  held = "";
}

process.stdin.on("data", (bytes: Buffer) => {
  begun ??= performance.now();
  const now = (performance.now() - begun) / 1000;
  // Output within a tenth of a second is one picture.
  if (held !== "" && now - since > 0.1) write();
  if (held === "") since = now;
  held += decoder.decode(bytes, { stream: true });
});
// The pane's end ends the pipe; a signal may come first.
process.on("SIGTERM", () => process.exit(0));
process.on("exit", write);
