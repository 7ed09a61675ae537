import { randomBytes } from "node:crypto";
import { poll } from "#base/wait.ts";
import { nodeFailed } from "../processes.ts";
import { dial } from "./qmp.ts";

/**
 * Runs a command line in root's shell on a virtual machine's second serial line, without the network, as soon as there is
 * such a shell. Returns its output. Throws `LAB_NODE_FAILED` if the command fails or takes longer than `timeout` milliseconds, or if
 * the machine ends.
 */
export async function runOnConsole(
  path: string,
  command: string,
  { timeout, lives }: { readonly timeout: number; readonly lives: () => Promise<boolean> },
): Promise<string> {
  const socket = await dial(path, lives);
  const word = randomBytes(4).toString("hex");
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  // The command quotes the word apart from its prefix, so that the terminal's echo of the command does not match.
  const ready = `rdy-${word}`;
  const done = new RegExp(`end-${word}-(\\d+)`);
  const end = performance.now() + timeout;
  try {
    while (!text.includes(ready)) {
      await requireTime(end, command, text, lives);
      socket.write(`stty -echo 2>/dev/null; echo rdy-'${word}'\n`);
      await poll(() => text.includes(ready), { everyMs: 20, limitMs: 1_000 });
    }
    text = "";
    socket.write(`{ ${command}\n}; echo end-'${word}'-$?\n`);
    const findEnd = async (): Promise<RegExpExecArray | undefined> => {
      const match = done.exec(text) ?? undefined;
      if (!match) await requireTime(end, command, text, lives);
      return match;
    };
    const match = (await poll(findEnd, { everyMs: 20 })) as RegExpExecArray;
    const printed = text.slice(0, match.index).replaceAll("\r", "").replaceAll(`${ready}\n`, "").trim();
    if (match[1] === "0") return printed;
    throw nodeFailed({ message: `“${command.slice(0, 60)}” failed on the console`, detail: printed });
  } finally {
    socket.destroy();
  }
}

/** Throws `LAB_NODE_FAILED` if the time is up or the machine has ended. */
async function requireTime(end: number, command: string, detail: string, lives: () => Promise<boolean>): Promise<void> {
  if (performance.now() < end && (await lives())) return;
  throw nodeFailed({ message: `“${command.slice(0, 60)}” did not end on the machine's console`, detail });
}
