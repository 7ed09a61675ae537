import { homedir } from "node:os";
import { join } from "node:path";
import { lookMemories } from "#engine/orchestrate/looks.ts";
import { managedThings } from "#engine/orchestrate/managed.ts";
import { keepRevision } from "#engine/orchestrate/node-revisions.ts";
import type { RunDependencies, RunResult } from "#engine/orchestrate/run-types.ts";
import { FACTS_AGE, keptFacts } from "#engine/roster/kept-facts.ts";
import type { PerformContext } from "#engine/run/conduct-run.ts";
import { runFolder, type RunHeader } from "#engine/run/run-folder.ts";
import type { OpenSession } from "#engine/session/session.ts";
import { secret } from "#engine/step/secret.ts";
import { openTables, tablesFolder } from "#engine/partition-backups/saved-tables.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import type { Fetch } from "#engine/step/remote.ts";
import { kcoreHome } from "./kcore-home.ts";
import { projectHooks, queueOf } from "../project/project-settings.ts";
import { openFileLimit } from "./open-files.ts";
import type { unlocker } from "./unlock-node.ts";

/** Loads the HTTP client, which few runs need. */
async function loadDownloads(): Promise<Fetch> {
  const { openDownloads } = await import("#engine/downloads/downloads.ts");
  return openDownloads({ folder: join(kcoreHome(), "cache", "downloads"), env: process.env });
}

interface RunInput {
  readonly stage: PerformContext;
  readonly project: string;
  readonly revision?: string;
  readonly dirty?: boolean;
  readonly passphrase?: string;
}

/** A run as its dependencies need to know it. */
type RunIdentity = Pick<RunHeader, "id" | "nonce" | "who" | "request" | "created">;

interface OpenInput extends Omit<RunInput, "stage"> {
  readonly header: RunIdentity;
  readonly io: Omit<PerformContext, "header">;
  /** Where the decisions about targets with `fact:` are kept; absent: nowhere. */
  readonly factTerms?: { readonly file: string; readonly isResumed: boolean };
}

/**
 * Loads the dependencies of runs; the result makes them for one run. Each node gets a runner, unless `openRunnerless` opens the sessions.
 */
export async function loadDependencies(
  openRunnerless?: OpenSession,
): Promise<(input: OpenInput) => { readonly deps: RunDependencies; readonly close: () => Promise<void> }> {
  const [{ createTransport }, openSession, { readSecret }, { openerOf }, { findAction, actionNames }] =
    await Promise.all([
      import("#engine/transport/connect.ts"),
      openRunnerless ?? import("#engine/session/open-session.ts").then((opened) => opened.openSession),
      import("#engine/roster/resolve-secret.ts"),
      import("#engine/encrypted-values/opener.ts"),
      import("#actions/registry.ts"),
    ]);
  return ({ header, io, project, factTerms, ...input }) => {
    const agentSocket = process.env["SSH_AUTH_SOCK"];
    const transport = createTransport({ home: homedir(), ...(agentSocket === undefined ? {} : { agentSocket }) });
    const sealed = openerOf({
      env: process.env,
      home: homedir(),
      ask: (text) => io.ask({ kind: "passphrase", text, secret: true }),
    });
    let opener: ReturnType<typeof unlocker> | undefined;
    const unlock: ReturnType<typeof unlocker> = async (request) =>
      (opener ??= (await import("./unlock-node.ts")).unlocker(header.who))(request);
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
      readSecret: async (reference, at) => maskInRecord(await readSecret(reference, (text) => sealed.open(text), at)),
      actions: findAction,
      actionNames,
      trust: trustOfProcess(process.env),
      hooks: () => projectHooks(project),
      fetch: async (...args) => (await (downloads ??= loadDownloads()))(...args),
      sources: { stale: process.env["KCORE_ROSTER_STALE"] === "1" },
      facts: keptFacts({
        project,
        since: header.request.factsSince ?? header.created - FACTS_AGE,
        skipUnknown: header.request.unknownFacts === "skip",
        ...(factTerms && { decided: factTerms }),
      }),
      opensCa: async (passphrase) => (await import("./opens-ca.ts")).opensCa(passphrase, header.request.context),
      openFiles: openFileLimit(),
      now: Date.now,
      ...(!openRunnerless && { managed: managedThings(project), looks: lookMemories(project) }),
      keepRevision: (...kept) => keepRevision(project, ...kept),
      ...input,
      ...io,
    };
    return { deps, close: () => transport.close() };
  };
}

/**
 * Loads the parts that carry out a run, as {@link loadDependencies}. `hasRecord`: whether the run has a folder of its own; by default only a
 * run with runners.
 */
export async function loadParts(
  openRunnerless?: OpenSession,
  hasRecord = !openRunnerless,
): Promise<(input: RunInput) => Promise<RunResult>> {
  const [{ executeRun }, open] = await Promise.all([
    import("#engine/orchestrate/execute-run.ts"),
    loadDependencies(openRunnerless),
  ]);
  return async ({ stage, project, ...input }) => {
    const { header, ...io } = stage;
    const factTerms = hasRecord && {
      file: join(runFolder(project, header.id).path, "fact-terms.json"),
      isResumed: io.earlier.some(({ type }) => type === "run.started"),
    };
    const { deps, close } = open({ header, io, project, ...(factTerms && { factTerms }), ...input });
    const queue = openRunnerless ? undefined : queueOf(project, header.request);
    const distributed = queue && (await import("./distribute-run.ts")).distributor(queue, deps, factTerms || undefined);
    try {
      return await executeRun(header.request, { ...deps, ...(distributed && { distribute: distributed.distribute }) });
    } finally {
      await distributed?.close();
      await close();
    }
  };
}

/** Masks the value in the run's record from now on, and returns it. */
export function maskInRecord(value: string): string {
  return secret(value).reveal();
}
