import { keepSpare, type SpareProcess } from "#engine/run/launch-run.ts";
import { takePassphraseFromEnvironment } from "./terminal/given-passphrase.ts";
import { reportFailure } from "./terminal/report-failure.ts";

/**
 * Runs one command line to its end and sets the process's exit code; the first run that it starts is driven by the
 * `spare` process. Never rejects.
 */
export async function start(argv: readonly string[], spare?: SpareProcess): Promise<void> {
  if (spare) keepSpare(spare);
  takePassphraseFromEnvironment();
  for (const stream of [process.stdout, process.stderr]) stream.on("error", onClosedOutput);
  const debug = argv.includes("--debug");
  try {
    if (argv[2] === "completion" && argv[3] === "candidates") {
      const { printCandidates } = await import("./completion/candidates.ts");
      return await printCandidates(argv.slice(argv[4] === "--" ? 5 : 4));
    }
    const { buildProgram, Finished } = await import("./program.ts");
    const program = await buildProgram(argv.slice(2));
    try {
      await program.parseAsync([...argv]);
    } catch (error) {
      if (!(error instanceof Finished)) throw error;
    }
  } catch (error) {
    process.exitCode = reportFailure(error, { debug, json: wantsJson(argv) });
  }
}

/** Whoever read our output has seen enough (`kcore … | head`), or the terminal is gone. */
function onClosedOutput(error: NodeJS.ErrnoException): void {
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
