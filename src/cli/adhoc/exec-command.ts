import { Command, Option } from "commander";
import type { RunEvent } from "#engine/events/event.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { exitCodes } from "#errors/problem.ts";
import { detectCi, escapeForCi } from "#tui/ci.ts";
import { showAnswers, type AnswerStream, drawFailedAnswers, drawGroups } from "./answers.ts";
import { runHere } from "../watch/run-here.ts";
import { collectSteps } from "../watch/step-results.ts";
import { addRunOptions } from "../watch/run-options.ts";
import { requestOf, requireTarget, type RunFlags } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";
import { openLines, type WatchResult } from "../watch/watch-run.ts";
import { quote } from "#base/quote.ts";
import { quoteWord } from "#tui/repeat-command.ts";
import { printResult } from "../terminal/format-result.ts";

interface ExecFlags extends RunFlags {
  readonly shell?: boolean;
  readonly group?: boolean;
  readonly verbose?: boolean;
  readonly lock?: boolean;
  readonly tty?: boolean;
  readonly output: "plain" | "json" | "events";
}

/** The exit code when a single node gave none, or 0 with only a part of its output: ssh(1) uses the same. */
const exitWithoutAnswer = 255;

/** `kcore exec --on TARGET -- CMD…`. */
export function execCommand(): Command {
  const command = new Command("exec")
    .description("Run one command on nodes: the answer of one node as it is, of several with their names")
    .argument("<command...>", "the command and its arguments, run without a shell; use --shell for pipes and ;")
    .passThroughOptions();
  addRunOptions(command, { full: false })
    .option("--shell", "run the words with sh -c, joined by blanks")
    .option("--group", "wait for all nodes; print identical answers once, with their nodes")
    .option("--verbose", "show the run too: when it began, each step, its summary")
    .option("--lock", "as a run: hold the nodes' locks, survive a lost connection, and keep a record")
    .addOption(
      new Option("--tty", "give the command this terminal, on one node, by this machine's ssh (kcore ssh)").conflicts([
        "group",
        "lock",
        "output",
        "verbose",
      ]),
    )
    .addOption(
      new Option("-o, --output <format>", "plain, json (one array at the end), events (one event a line)")
        .choices(["plain", "json", "events"])
        .default("plain"),
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore exec --on 'role:worker' -- uname -a
  kcore exec --on '*' --shell 'df -h / | tail -1'
  kcore exec --on '*' --group -- uname -r
  kcore exec --on n1 -- tar -C /etc -cz kcore >etc-kcore.tar.gz
  kcore exec --on n1 -o json -- cat /etc/os-release
  kcore exec --on n1 --tty -- vi /etc/fstab

Of one node, stdout, stderr and the exit code are the command's, byte for byte (on a terminal
without escape sequences); 255: there is no exit code, or not all of the output, and stderr says
why. Of several: 0 all ended with 0, 1 one did not, 3 some could not be reached. The command of
one node reads stdin as it comes, of several each all of it; with --lock none does. Ctrl-C ends
the command.`,
    )
    .action(execute);
  return command;
}

async function execute(argv: readonly string[], flags: ExecFlags): Promise<void> {
  requireTarget(flags, "exec");
  if (flags.tty) {
    const { openTerminal } = await import("./open-ssh.ts");
    return openTerminal(flags.shell ? argv.join(" ") : argv.map(quote).join(" "), flags);
  }
  const request = requestOf(flags, { kind: "exec", argv, shell: flags.shell ?? false });
  switch (flags.output) {
    case "events": {
      const lines = await openLines("json");
      process.exitCode = (await runExec(flags, request, (event) => lines.draw(event))).exitCode;
      return;
    }
    case "json": {
      const steps = collectSteps();
      const { exitCode, model } = await runExec(flags, request, steps.take);
      printResult(steps.results(model), "json");
      process.exitCode = exitCode;
      return;
    }
    case "plain":
      process.exitCode = await printAnswers(flags, request);
  }
}

/** With `--lock` starts a run, else runs the command from this process. */
async function runExec(
  flags: ExecFlags,
  request: RunRequest,
  onEvent: (event: RunEvent) => void,
): Promise<Pick<WatchResult, "exitCode" | "model" | "leftEarly">> {
  if (flags.lock) return startRun(flags, request, { output: "quiet", onEvent });
  const collects = flags.output === "json" || flags.group === true;
  return { ...(await runHere(flags, request, onEvent, { collects })), leftEarly: false };
}

/** Prints the command's output, and returns the exit code. */
async function printAnswers(flags: ExecFlags, request: RunRequest): Promise<number> {
  const { group = false, verbose = false } = flags;
  const [out, err] = [process.stdout, process.stderr];
  const steps = collectSteps();
  const answers = showAnswers({ out: streamOf(out), err: streamOf(err), group });
  const lines = verbose ? await openLines("plain") : undefined;
  const onEvent = (event: RunEvent) => {
    if (lines) return lines.draw(event);
    if (group) steps.take(event);
    answers.draw(event);
  };
  const { model, leftEarly, exitCode } = await runExec(flags, request, onEvent);
  const results = steps.results(model);
  answers.flush();
  if (leftEarly) return exitCode;
  const { what } = request;
  if (
    what.kind === "exec" &&
    needsShell(
      what,
      results.map((one) => one.exitCode),
    )
  )
    err.write(
      `hint: no shell reads the words; with --shell one does: kcore exec --on TARGET --shell ${quoteWord(what.argv.join(" "))}\n`,
    );
  const [only] = results.length === 1 ? results : [];
  if (group && !verbose) {
    const drawn = drawGroups(results);
    out.write(forCi(drawn.out));
    err.write(forCi(drawn.err));
  } else if (!verbose && only?.exitCode === undefined) err.write(forCi(drawFailedAnswers(results)));
  if (!only || exitCode === exitCodes.interrupted) return exitCode;
  // A caller must not take partial output for all of it.
  return only.exitCode === undefined || (only.exitCode === 0 && answers.isCut) ? exitWithoutAnswer : only.exitCode;
}

/** Whether the first word has shell syntax and a node found no program of that name. */
export function needsShell(
  { argv, shell }: { readonly argv: readonly string[]; readonly shell: boolean },
  exitCodes: readonly (number | undefined)[],
): boolean {
  const [program = ""] = argv;
  return !shell && /[\s;|&<>$`*]/.test(program) && exitCodes.includes(127);
}

function streamOf(stream: NodeJS.WriteStream): AnswerStream {
  return {
    write: (text) => void stream.write(text),
    tell: (text) => void stream.write(forCi(text)),
    isScreen: stream.isTTY,
  };
}

function forCi(text: string): string {
  return escapeForCi(detectCi(process.env), text);
}
