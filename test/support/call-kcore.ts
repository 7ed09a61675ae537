import { Writable } from "node:stream";
import { start } from "../../src/cli/start.ts";
import { programFile } from "./program.ts";
import type { CommandEnd } from "./kcore.ts";

/** The last call. Calls run one at a time, since a command line uses the process's folder, environment and streams. */
let last: Promise<unknown> = Promise.resolve();

interface CallOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Runs `kcore WORDS…` in this process, like the program after its start; a run that it begins has a process of its own. */
export function callKcore(words: readonly string[], options: CallOptions): Promise<CommandEnd> {
  const called = last.then(() => call(words, options));
  last = called.catch(() => undefined);
  return called;
}

async function call(words: readonly string[], { cwd, env }: CallOptions): Promise<CommandEnd> {
  const before = { cwd: process.cwd(), argv: process.argv, env: { ...process.env }, exitCode: process.exitCode };
  const streams = { stdout: process.stdout, stderr: process.stderr };
  const [stdout, stderr] = [new KeptOutput(), new KeptOutput()];
  const argv = [process.execPath, programFile, ...words];
  try {
    process.chdir(cwd);
    process.argv = argv;
    process.exitCode = undefined;
    Object.assign(process.env, env);
    replaceStreams({ stdout, stderr });
    await start(argv);
    return { code: Number(process.exitCode ?? 0), stdout: stdout.text, stderr: stderr.text };
  } finally {
    replaceStreams(streams);
    process.chdir(before.cwd);
    process.argv = before.argv;
    process.exitCode = before.exitCode;
    for (const name of Object.keys(process.env)) if (!(name in before.env)) delete process.env[name];
    Object.assign(process.env, before.env);
  }
}

function replaceStreams(streams: Readonly<Record<"stdout" | "stderr", unknown>>): void {
  for (const [name, value] of Object.entries(streams))
    Object.defineProperty(process, name, { configurable: true, value });
}

/** A stream that keeps its text, and is no terminal. */
class KeptOutput extends Writable {
  text = "";

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
