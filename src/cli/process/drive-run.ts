import { existsSync } from "node:fs";
import { join } from "node:path";
import { conductRun } from "#engine/run/conduct-run.ts";
import type { Notifier } from "#engine/run/notify.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import { changeHeader, readHeader, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";
import { knownSecrets } from "#engine/step/secret.ts";
import type { ExitCode } from "#errors/problem.ts";
import { gitState } from "./git-state.ts";
import { loadParts, maskInRecord } from "./load-run-parts.ts";
import { recordContent } from "./refuse-changed-project.ts";

interface DriveOptions {
  /** The parts that carry out the run, perhaps still loading; by default they are loaded now. */
  readonly parts?: ReturnType<typeof loadRun>;
  /** The CA passphrase given at start. */
  readonly passphrase: Promise<string | undefined>;
  /** Called once views can connect. */
  readonly onListening: () => void;
}

/** Loads the parts that carry out a run; an error comes when the run needs them. */
export function loadRun(): ReturnType<typeof loadParts> {
  const parts = loadParts();
  parts.catch(() => undefined);
  return parts;
}

/** Drives a recorded run in this process, and returns the run's exit code. @throws KcoreError as conductRun */
export async function driveRun(
  folder: RunFolder,
  { parts = loadRun(), passphrase, onListening }: DriveOptions,
): Promise<ExitCode> {
  const { project } = folder;
  const state = gitState(project);
  const header = await readHeader(folder);
  return conductRun({
    folder,
    header,
    onListening,
    secrets: knownSecrets,
    notifier: () => notifierOf(header, project),
    perform: async (stage) => {
      // Record the project's content before the run reads any of it.
      if (!stage.earlier.some(({ type }) => type === "run.started")) recordContent(folder);
      const given = await passphrase;
      const at = await state;
      if (Object.keys(at).length > 0) changeHeader(folder, at);
      await checkRevision(header.request, project);
      const masked = given === undefined ? {} : { passphrase: maskInRecord(given) };
      return (await parts)({ stage, project, ...at, ...masked });
    },
  });
}

/** Refuses a revision that the request or the project does not allow. @throws KcoreError PROJECT_DIRTY, COMMIT_UNSIGNED */
async function checkRevision(request: RunHeader["request"], project: string): Promise<void> {
  const isAsked = request.requireClean === true || request.requireSigned === true;
  if (!isAsked && !existsSync(join(project, "kcore.yaml"))) return;
  await (await import("./require-revision.ts")).requireRevision(project, request);
}

/** The notifier of a run; undefined for dry runs, for `exec --lock`, and without notices in the project. */
async function notifierOf({ id, who, request }: RunHeader, project: string): Promise<Notifier | undefined> {
  if (request.dryRun || request.what.kind === "exec") return undefined;
  if (!existsSync(join(project, "notify.yaml"))) return undefined;
  const [{ readNotices }, { Notifier }] = await Promise.all([
    import("#engine/orchestrate/notices.ts"),
    import("#engine/run/notify.ts"),
  ]);
  const notices = readNotices(project, trustOfProcess(process.env));
  return notices.length === 0 ? undefined : new Notifier(notices, { project, run: id, command: request.command, who });
}
