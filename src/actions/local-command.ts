import { join, resolve } from "node:path";
import { z } from "zod";
import { isThere } from "#base/file.ts";
import { run, type ProcessEnd } from "#base/process.ts";
import { KcoreError } from "#errors/problem.ts";
import { lastLines, WholeLines } from "#engine/events/whole-lines.ts";
import { TextOrSecret } from "#engine/step/fields.ts";
import { Secret } from "#engine/step/secret.ts";
import { shellText, shellWords } from "#engine/step/shell-text.ts";
import { type ActionContext, type ActionResult, defineAction } from "#engine/orchestrate/action.ts";
import { InProject } from "./in-project.ts";

/** The most bytes of output; more of it ends the command. */
const OUTPUT_LIMIT = 2 * 2 ** 20;
/** The most characters of output that later stages and problems get. */
const RESULT_LENGTH = 64 * 2 ** 10;
/** Milliseconds from SIGTERM to SIGKILL. */
const KILL_AFTER = 5000;

const args = z.strictObject({
  command: z
    .union([shellText(z.string().min(1)), shellWords(z.array(z.string()).min(1))])
    .describe("A text for /bin/sh, or a list: a program and its arguments, passed on as they are."),
  cwd: InProject.default(".").describe("Folder to run in, relative to the project."),
  env: z.record(z.string(), z.string()).default({}).describe("More environment variables; never put a secret here."),
  stdin: TextOrSecret.optional().describe("Text for the command's standard input; may be a secret."),
  creates: z.string().optional().describe("If this file exists (relative to the project) there is nothing to do."),
  unless: shellText(z.string()).optional().describe("If this text for /bin/sh succeeds there is nothing to do."),
  readOnly: z
    .boolean()
    .default(false)
    .describe("The command changes nothing: it runs in dry runs, too, in spite of creates and unless; never a change."),
});
type Args = z.output<typeof args>;

/**
 * Runs a command on the bastion, in the project's folder. Gives `stdout`, `stderr` and `rc` to later stages.
 * ```yaml
 * - { id: tag, run: local.command, command: [git, tag, "deployed-{{run.id}}"], unless: "git tag | grep -q deployed" }
 * ```
 */
export const localCommand = defineAction({
  name: "local.command",
  summary: "Runs a command on the bastion.",
  outputs: ["rc", "stderr", "stdout"],
  bastionNames: ["command.0", "cwd", "creates"],
  args,
  async run(given, context) {
    if (!given.readOnly && (await isDone(given, context))) return unchanged;
    return execute(given, context);
  },
  async plan(given, context) {
    if (given.readOnly) return execute(given, context);
    return (await isDone(given, context)) ? unchanged : "unknown";
  },
});

const unchanged: ActionResult = { changed: false, outputs: { rc: 0, stdout: "", stderr: "" } };

async function isDone({ creates, unless, ...given }: Args, context: ActionContext): Promise<boolean> {
  if (creates !== undefined && (await isThere(resolve(context.project, creates)))) return true;
  if (unless === undefined) return false;
  return (await runCommand(["/bin/sh", "-c", unless], given, context)).code === 0;
}

async function execute(given: Args, context: ActionContext): Promise<ActionResult> {
  const { command, readOnly } = given;
  const words = typeof command === "string" ? ["/bin/sh", "-c", command] : command;
  const { code, signal, stopped, stdout, stderr } = await runCommand(words, given, context, context.output);
  if (code === 0)
    return {
      changed: !readOnly,
      outputs: {
        rc: 0,
        stdout: lastLines(stdout, RESULT_LENGTH).replace(/\n$/, ""),
        stderr: lastLines(stderr, RESULT_LENGTH),
      },
    };
  if (stopped)
    throw new KcoreError({
      code: "LOCAL_COMMAND_FAILED",
      message: `“${commandText(given)}” printed more than ${OUTPUT_LIMIT / 2 ** 20} MiB`,
      hint: "send its output to a file",
    });
  const detail = lastLines(stderr.trim() === "" ? stdout : stderr, RESULT_LENGTH).trim();
  throw new KcoreError({
    code: "LOCAL_COMMAND_FAILED",
    message: `“${commandText(given)}” ${signal ? `was ended by ${signal}` : `ended with exit code ${code}`}`,
    hint: `the command ran in ${join(context.project, given.cwd)}`,
    ...(detail !== "" && { detail }),
  });
}

async function runCommand(
  words: readonly string[],
  { cwd, env, stdin }: Pick<Args, "cwd" | "env" | "stdin">,
  { project, signal }: ActionContext,
  tell: ActionContext["output"] = () => undefined,
): Promise<ProcessEnd> {
  const lines = wholeLines(tell);
  const ended = await run(words, {
    cwd: resolve(project, cwd),
    env: { ...process.env, ...env },
    input: stdin instanceof Secret ? stdin.reveal() : (stdin ?? ""),
    signal,
    mostBytes: OUTPUT_LIMIT,
    ownGroup: true,
    graceMs: KILL_AFTER,
    onOutput: lines.onOutput,
  });
  lines.end();
  return ended;
}

/** Passes the output of a program to `tell`, whole lines at a time; `end` passes the rest. */
export function wholeLines(tell: ActionContext["output"]): {
  readonly onOutput: (stream: "out" | "err", chunk: Buffer) => void;
  readonly end: () => void;
} {
  const decoders = { out: lineDecoder(), err: lineDecoder() };
  const pass = (stream: "out" | "err", text: string): void => void (text !== "" && tell(stream, text));
  return {
    onOutput: (stream, chunk) => pass(stream, decoders[stream].take(chunk)),
    end: () => {
      for (const stream of ["out", "err"] as const) pass(stream, decoders[stream].end());
    },
  };
}

function lineDecoder(): { take: (chunk: Buffer) => string; end: () => string } {
  const [lines, decoder] = [new WholeLines(), new TextDecoder("utf-8")];
  return {
    take: (chunk) => decoder.decode(lines.take(chunk, Date.now()), { stream: true }),
    end: () => decoder.decode(lines.end()),
  };
}

function commandText({ command }: Args): string {
  return (typeof command === "string" ? command : command.join(" ")).slice(0, 200);
}
