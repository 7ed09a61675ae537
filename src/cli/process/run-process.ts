import { text } from "node:stream/consumers";
import { homedir } from "node:os";
import { join } from "node:path";
import { knownSecrets, secret } from "#engine/step/secret.ts";
import type { RunDependencies, RunResult } from "#engine/orchestrate/execute.ts";
import { conductRun, type RunStage } from "#engine/run/conduct-run.ts";
import { readHeader, runFolder, writeHeader } from "#engine/run/run-folder.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import type { ExitCode } from "#errors/problem.ts";
import { gitState } from "./git-state.ts";
import { openFileLimit } from "./open-files.ts";

/** `run-main ID PROJECT`: the run's own process. What it must not leave on a disk comes by stdin. */
export async function serveRun([id = "", project = ""]: readonly string[]): Promise<ExitCode> {
  // A closed terminal and Ctrl-C concern the views only.
  process.on("SIGHUP", () => undefined);
  process.on("SIGINT", () => undefined);
  // The parts of the engine load while the record is opened.
  const parts = loadParts();
  parts.catch(() => undefined);
  const state = gitState(project);
  const handed = readHandedOver();
  const folder = runFolder(project, id);
  const header = await readHeader(folder);
  return conductRun({
    folder,
    header,
    secrets: knownSecrets,
    perform: async (stage) => {
      const { passphrase } = await handed;
      const { revision, dirty } = await state;
      const at = { ...(revision === undefined ? {} : { revision }), ...(dirty === undefined ? {} : { dirty }) };
      await writeHeader(folder, { ...(await readHeader(folder)), ...at });
      return (await parts)({
        stage,
        project,
        ...at,
        ...(passphrase === undefined ? {} : { passphrase: known(passphrase) }),
      });
    },
  });
}

interface Given {
  readonly stage: RunStage;
  readonly project: string;
  readonly revision?: string;
  readonly dirty?: boolean;
  readonly passphrase?: string;
}

async function loadParts(): Promise<(given: Given) => Promise<RunResult>> {
  const [{ executeRun }, { createTransport }, { openSession }, { readSecret }, { findAction, actionNames }] =
    await Promise.all([
      import("#engine/orchestrate/execute-run.ts"),
      import("#engine/transport/connect.ts"),
      import("#engine/session/open-session.ts"),
      import("#engine/roster/resolve-secret.ts"),
      import("#actions/registry.ts"),
    ]);
  return async ({ stage, project, ...given }) => {
    const { header, ...io } = stage;
    const agentSocket = process.env["SSH_AUTH_SOCK"];
    const transport = createTransport({ home: homedir(), ...(agentSocket === undefined ? {} : { agentSocket }) });
    const deps: RunDependencies = {
      runId: header.id,
      nonce: header.nonce,
      who: header.who,
      project,
      shipped: shippedRoot(),
      home: process.env["KCORE_HOME"] ?? join(homedir(), ".kcore"),
      connect: transport.connect,
      openSession,
      readSecret: async (reference) => known(await readSecret(reference)),
      actions: findAction,
      actionNames,
      trust: trustOfProcess(process.env),
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

async function readHandedOver(): Promise<{ readonly passphrase?: string }> {
  const handed = await text(process.stdin);
  return handed === "" ? {} : (JSON.parse(handed) as { passphrase?: string });
}
