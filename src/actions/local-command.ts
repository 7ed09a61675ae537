import { access } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { $, type ProcessOutput } from "zx/core";
import { KcoreError } from "#errors/problem.ts";
import { lastLines, WholeLines } from "#engine/events/whole-lines.ts";
import { Text } from "#engine/step/fields.ts";
import { quote } from "#engine/step/quote.ts";
import { Secret } from "#engine/step/secret.ts";
import { shellText, shellWords } from "#engine/step/shell-text.ts";
import { type ActionContext, type ActionResult, defineAction } from "#engine/orchestrate/action.ts";
import { InProject } from "./in-project.ts";

/** Bytes of output: more end the command; characters of what it printed that are given to later stages. */
const LIMIT = 2 * 2 ** 20;
const KEPT = 64 * 2 ** 10;
/** Milliseconds. */
const KILL_AFTER = 5000;

const args = z.strictObject({
  command: z
    .union([shellText(z.string().min(1)), shellWords(z.array(z.string()).min(1))])
    .describe("A text for /bin/sh, or a list: a program and its arguments, passed on as they are."),
  cwd: InProject.default(".").describe("Folder to run in, relative to the project."),
  env: z.record(z.string(), z.string()).default({}).describe("More environment variables; never put a secret here."),
  stdin: Text.optional().describe("Text for its standard input; may be a secret."),
  creates: z.string().optional().describe("If this file exists (relative to the project) there is nothing to do."),
  unless: shellText(z.string()).optional().describe("If this text for /bin/sh succeeds there is nothing to do."),
  readOnly: z
    .boolean()
    .default(false)
    .describe("It changes nothing: it runs in dry runs too and never counts as a change."),
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
  if (creates !== undefined && (await exists(resolve(context.project, creates)))) return true;
  if (unless === undefined) return false;
  const { exitCode } = await start(unless, given, context);
  return exitCode === 0;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function execute(given: Args, context: ActionContext): Promise<ActionResult> {
  const { command, readOnly } = given;
  const text = typeof command === "string" ? command : command.map(quote).join(" ");
  const output = await start(text, given, context, context.output);
  const { exitCode, signal, stdout, stderr } = output;
  if (exitCode === 0)
    return {
      changed: !readOnly,
      outputs: { rc: 0, stdout: lastLines(stdout, KEPT).replace(/\n$/, ""), stderr: lastLines(stderr, KEPT) },
    };
  const detail = lastLines(stderr.trim() === "" ? stdout : stderr, KEPT).trim();
  throw new KcoreError({
    code: "LOCAL_COMMAND_FAILED",
    message: `“${shown(given)}” ${signal ? `was ended by ${signal}` : `ended with exit code ${exitCode}`}`,
    hint: `it ran in ${join(context.project, given.cwd)}`,
    ...(detail !== "" && { detail }),
  });
}

async function start(
  text: string,
  { cwd, env, stdin }: Pick<Args, "cwd" | "env" | "stdin">,
  { project, signal }: ActionContext,
  tell: ActionContext["output"] = () => undefined,
): Promise<ProcessOutput> {
  // zx quotes for bash only, so the text is ours alone: no value enters through its template.
  const run = $({
    shell: "/bin/sh",
    prefix: "",
    postfix: "",
    cwd: resolve(project, cwd),
    env: { ...process.env, ...env },
    input: stdin instanceof Secret ? stdin.reveal() : (stdin ?? ""),
    nothrow: true,
    quiet: true,
    detached: true,
  });
  signal.throwIfAborted();
  const running = run(Object.assign([text], { raw: [text] }) as unknown as TemplateStringsArray);
  const stop = stopper(running.pid);
  signal.addEventListener("abort", stop, { once: true });
  let printed = 0;
  const ends = (["out", "err"] as const).map((stream) => {
    const [lines, decoder] = [new WholeLines(), new TextDecoder("utf-8")];
    const pass = (some: string): void => void (some !== "" && tell(stream, some));
    running[`std${stream}`].on("data", (chunk: Buffer) => {
      printed += chunk.length;
      if (printed > LIMIT) stop();
      pass(decoder.decode(lines.take(chunk, Date.now()), { stream: true }));
    });
    return () => pass(decoder.decode(lines.end()));
  });
  const output = await running.finally(() => signal.removeEventListener("abort", stop));
  for (const end of ends) end();
  signal.throwIfAborted();
  if (printed <= LIMIT) return output;
  throw new KcoreError({
    code: "LOCAL_COMMAND_FAILED",
    message: `“${text.slice(0, 60)}” printed more than ${LIMIT / 2 ** 20} MiB`,
    hint: "send its output to a file",
  });
}

/** Ends the command's whole process group, which is its own: TERM, and KILL after 5 s for what is left. */
function stopper(group: number | undefined): () => void {
  const kill = (signal: "SIGTERM" | "SIGKILL"): void => {
    try {
      if (group !== undefined && group > 1) process.kill(-group, signal);
    } catch {
      // It is gone already.
    }
  };
  return () => {
    kill("SIGTERM");
    setTimeout(kill, KILL_AFTER, "SIGKILL").unref();
  };
}

function shown({ command }: Args): string {
  return (typeof command === "string" ? command : command.join(" ")).slice(0, 200);
}
