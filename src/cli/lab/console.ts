import { once } from "node:events";
import type { Socket } from "node:net";
import { run } from "#base/process.ts";

/** Prints a file, and with `follow` what is added to it, until the user stops it. */
export async function showFile(path: string, follow: boolean): Promise<void> {
  await run(follow ? ["tail", "-n", "200", "-F", path] : ["cat", "--", path], { inherit: "terminal" });
}

/** Ctrl-], as telnet(1) has it. */
const leave = 0x1d;

/** Joins the terminal, which there has to be, to a serial line until the user leaves or the line ends. */
export async function talk(line: Socket): Promise<void> {
  const { stdin, stdout, stderr } = process;
  stdin.setRawMode(true);
  stderr.write("root's shell on the machine's second line; Ctrl-] leaves it\r\n");
  // The line's shell has no prompt of its own, and kcore's own use of it turned the echo off.
  line.write("PS1='# '; stty echo\n");
  const ended = once(line, "close");
  line.pipe(stdout, { end: false });
  stdin.on("data", (keys: Buffer) => void (keys.includes(leave) ? line.destroy() : line.write(keys)));
  await ended;
  stdin.setRawMode(false);
  stdin.destroy();
  stderr.write("\n");
}
