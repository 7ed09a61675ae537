import { keepWarm, type WarmProcess } from "#engine/run/launch-run.ts";
import { takePassphraseFromEnvironment } from "./terminal/given-passphrase.ts";
import { allowDriving, awaitDriven, hasDriven } from "./process/drive-here.ts";
import { reportFailure } from "./terminal/report-failure.ts";

interface Starting {
  /** Drives the first run that the command starts. */
  readonly warm?: WarmProcess | undefined;
  /** Whether no terminal is there: then this process drives the runs that the command starts. */
  readonly isAlone?: boolean;
}

/** Runs one command line to its end and sets the process's exit code. Never rejects. */
export async function start(argv: readonly string[], { warm, isAlone = false }: Starting = {}): Promise<void> {
  if (warm) keepWarm(warm);
  if (isAlone) allowDriving();
  await startCommand(argv);
  if (!(await awaitDriven())) return;
  // All records are closed, so an open handle of a run must not keep the process; unwritten output must.
  for (const stream of [process.stdout, process.stderr]) await new Promise<unknown>((done) => stream.write("", done));
  process.exit();
}

async function startCommand(argv: readonly string[]): Promise<void> {
  takePassphraseFromEnvironment();
  for (const stream of [process.stdout, process.stderr]) stream.on("error", onClosedOutput);
  const debug = argv.includes("--debug");
  try {
    const { buildProgram, HelpShown } = await import("./program.ts");
    if (argv[2] === "completion" && argv[3] === "candidates") {
      const words = argv.slice(argv[4] === "--" ? 5 : 4);
      return await (await import("./completion/candidates.ts")).printCandidates(await buildProgram(words), words);
    }
    const program = await buildProgram(argv.slice(2));
    try {
      await program.parseAsync([...argv]);
    } catch (error) {
      if (!(error instanceof HelpShown)) throw error;
    }
  } catch (error) {
    process.exitCode = reportFailure(error, { debug, json: wantsJson(argv) });
  }
}

/**
 * Ignores a pipe that its reader has closed (`kcore … | head`), and a terminal that is gone. While this process drives a
 * run, any lost output ends only the view.
 */
function onClosedOutput(error: NodeJS.ErrnoException): void {
  if (hasDriven()) return;
  if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
}

function wantsJson(argv: readonly string[]): boolean {
  const own = argv.includes("--") ? argv.slice(0, argv.indexOf("--")) : argv;
  return own.some(
    (word, index) =>
      word === "-ojson" ||
      word === "--output=json" ||
      (word === "json" && /^(-o|--output)$/.test(own[index - 1] ?? "")),
  );
}
