import { closeSync } from "node:fs";
import { text } from "node:stream/consumers";
import { homedir } from "node:os";
import { join } from "node:path";
import { knownSecrets, secret } from "#engine/step/secret.ts";
import type { RunDependencies, RunResult } from "#engine/orchestrate/execute.ts";
import { conductRun, type RunStage } from "#engine/run/conduct-run.ts";
import { openTables, tablesFolder } from "#engine/tables/saved-tables.ts";
import { changeHeader, readHeader, runFolder, type RunFolder } from "#engine/run/run-folder.ts";
import { FACTS_AGE, keptFacts } from "#engine/roster/kept-facts.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import type { Fetch } from "#engine/step/remote.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { exitCodes, type ExitCode } from "#errors/problem.ts";
import { gitState } from "./git-state.ts";
import { kcoreHome } from "./kcore-home.ts";
import { openFileLimit } from "./open-files.ts";
import { reopen } from "./reopen.ts";
import type { unlocker } from "./unlock-node.ts";

/**
 * The run's own process: `run-main ID PROJECT`, or without words, when it was started before that was known; then stdin
 * tells it. What must not be left on a disk comes by stdin, too.
 */
export async function serveRun(words: readonly string[]): Promise<ExitCode> {
  // A closed terminal and Ctrl-C concern the views only.
  process.on("SIGHUP", () => undefined);
  process.on("SIGINT", () => undefined);
  const isSpare = words.length === 0;
  // The parts of the engine load while the record is opened, those of a spare process while it waits.
  const parts = loadParts();
  parts.catch(() => undefined);
  if (isSpare) await parts;
  const handed = readHandedOver();
  const { id, project = "" } = isSpare ? await handed : { id: words[0], project: words[1] };
  // Nobody wants it.
  if (id === undefined) return exitCodes.done;
  const folder = runFolder(project, id);
  if (isSpare) takePlace(folder);
  const state = gitState(project);
  const header = await readHeader(folder);
  return conductRun({
    folder,
    header,
    onListening: () => isSpare && closeSync(TELLS),
    secrets: knownSecrets,
    perform: async (stage) => {
      const { passphrase } = await handed;
      const { revision, dirty } = await state;
      const at = { ...(revision === undefined ? {} : { revision }), ...(dirty === undefined ? {} : { dirty }) };
      if (revision !== undefined || dirty !== undefined) changeHeader(folder, at);
      return (await parts)({
        stage,
        project,
        ...at,
        ...(passphrase === undefined ? {} : { passphrase: known(passphrase) }),
      });
    },
  });
}

/** Few runs fetch anything: what asks by HTTP is loaded for those. */
async function loadDownloads(): Promise<Fetch> {
  const { openDownloads } = await import("#engine/downloads/downloads.ts");
  return openDownloads({ folder: join(kcoreHome(), "cache", "downloads"), env: process.env });
}

interface Given {
  readonly stage: RunStage;
  readonly project: string;
  readonly revision?: string;
  readonly dirty?: boolean;
  readonly passphrase?: string;
}

async function loadParts(): Promise<(given: Given) => Promise<RunResult>> {
  const [
    { executeRun },
    { createTransport },
    { openSession },
    { readSecret },
    { openerOf },
    { findAction, actionNames },
  ] = await Promise.all([
    import("#engine/orchestrate/execute-run.ts"),
    import("#engine/transport/connect.ts"),
    import("#engine/session/open-session.ts"),
    import("#engine/roster/resolve-secret.ts"),
    import("#engine/sealed/opener.ts"),
    import("#actions/registry.ts"),
  ]);
  return async ({ stage, project, ...given }) => {
    const { header, ...io } = stage;
    const agentSocket = process.env["SSH_AUTH_SOCK"];
    const transport = createTransport({ home: homedir(), ...(agentSocket === undefined ? {} : { agentSocket }) });
    const sealed = openerOf({
      env: process.env,
      home: homedir(),
      ask: (text) => io.ask({ kind: "passphrase", text, secret: true }),
    });
    let opener: ReturnType<typeof unlocker> | undefined;
    const unlock: ReturnType<typeof unlocker> = async (asked) =>
      (opener ??= (await import("./unlock-node.ts")).unlocker(header.who))(asked);
    let downloads: Promise<Fetch> | undefined;
    const deps: RunDependencies = {
      runId: header.id,
      nonce: header.nonce,
      who: header.who,
      project,
      shipped: shippedRoot(),
      home: kcoreHome(),
      connect: transport.connect,
      openSession,
      unlock,
      tables: openTables(tablesFolder(project), Date.now),
      readSecret: async (reference, at) => known(await readSecret(reference, (text) => sealed.open(text), at)),
      actions: findAction,
      actionNames,
      trust: trustOfProcess(process.env),
      fetch: async (...asked) => (await (downloads ??= loadDownloads()))(...asked),
      sources: { stale: process.env["KCORE_ROSTER_STALE"] === "1" },
      facts: keptFacts({
        project,
        since: header.request.factsSince ?? header.created - FACTS_AGE,
        skipUnknown: header.request.unknownFacts === "skip",
        decided: {
          file: join(runFolder(project, header.id).path, "fact-terms.json"),
          isResumed: io.earlier.some(({ type }) => type === "run.started"),
        },
      }),
      opensCa: async (passphrase) => (await import("./opens-ca.ts")).opensCa(passphrase, header.request.context),
      openFiles: openFileLimit(),
      now: Date.now,
      ...given,
      ...io,
    };
    try {
      return await executeRun(header.request, deps);
    } finally {
      await transport.close();
    }
  };
}

/** Lets the record mask the value from now on. */
function known(value: string): string {
  return secret(value).reveal();
}

interface HandedOver {
  readonly id?: string;
  readonly project?: string;
  readonly passphrase?: string;
}

async function readHandedOver(): Promise<HandedOver> {
  const handed = await text(process.stdin);
  return handed === "" ? {} : (JSON.parse(handed) as HandedOver);
}

/** The descriptor whose end tells that views can connect. */
const TELLS = 3;

/** Makes a spare process what it had been from the start if the run had been known: its folder, its log, its name in `ps`. */
function takePlace({ id, project, processLog }: RunFolder): void {
  process.chdir(project);
  for (const descriptor of [1, 2]) reopen(descriptor, processLog);
  process.title = `${process.argv[1] ?? "run-main"} ${id} ${project}`;
}
