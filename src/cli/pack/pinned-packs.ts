import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { packNames, packsFolder } from "#engine/project/folders.ts";
import { readSource } from "#engine/yaml/read.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { validate } from "#engine/yaml/validate.ts";
import { makeFolder, replaceFolder, unfinishedPrefix } from "#base/folder.ts";
import { createFile, replaceFile } from "#base/file.ts";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import { withLock } from "#lab/lock.ts";
import type { FetchedPack, PackSource } from "./fetch-pack.ts";
import { hashPack, keepBytes, otherLineEnds, readPack } from "./pack-files.ts";

const file = "packs.yaml";

const Pin = z.strictObject({
  source: z.string().min(1),
  path: z.string().min(1).optional(),
  ref: z.string().min(1).optional(),
  revision: z
    .string()
    .regex(/^[0-9a-f]{40}$|^[0-9a-f]{64}$/, "must be a commit")
    .optional(),
  hash: z.string().regex(/^sha256:[0-9a-f]{64}$/, "must be sha256:… of 64 hex digits"),
});

/** A pack as `packs.yaml` pins it. */
export type Pin = z.output<typeof Pin>;

export type Pins = Readonly<Record<string, Pin>>;

/** The project's pins; none without packs.yaml. @throws KcoreError with every problem of packs.yaml, at its line */
export function readPins(project: string): Pins {
  const path = join(project, file);
  return existsSync(path) ? validate(readSource(path, { name: file }), z.record(z.string(), Pin)) : {};
}

/** Puts a pack into the project in place of its former files, and pins it; only under {@link withPacksLock}. */
export async function keepPack(project: string, source: PackSource, pack: FetchedPack): Promise<Pin> {
  const folder = join(project, packsFolder);
  await makeFolder(folder);
  // Under the lock, unfinished folders can only be remains of a killed command.
  for (const name of await readdir(folder))
    if (name.startsWith(unfinishedPrefix)) await rm(join(folder, name), { recursive: true, force: true });
  await keepBytes(project);
  const fill = async (fresh: string): Promise<void> => {
    for (const { name, bytes, isProgram } of pack.files) {
      await makeFolder(dirname(join(fresh, name)));
      await createFile(join(fresh, name), bytes, { mode: isProgram ? 0o755 : 0o644 });
    }
  };
  await replaceFolder(join(folder, pack.name), fill, { mode: 0o777 });
  const pin: Pin = {
    ...source,
    ...(pack.revision !== undefined && { revision: pack.revision }),
    hash: hashPack(pack.files),
  };
  await writePins(project, { ...readPins(project), [pack.name]: pin });
  return pin;
}

/** Takes a pack out of packs.yaml; only under {@link withPacksLock}. */
export async function dropPin(project: string, name: string): Promise<void> {
  const { [name]: _, ...others } = readPins(project);
  await writePins(project, others);
}

async function writePins(project: string, pins: Pins): Promise<void> {
  const sorted = Object.fromEntries(Object.entries(pins).sort(byName));
  await replaceFile(join(project, file), pinsComment + printYaml(sorted), { mode: 0o644 });
}

const pinsComment = "# The packs under packs/, each pinned: kcore pack update and kcore pack verify (docs/packs.md).\n";

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** The longest wait for another command that changes packs. */
const lockSeconds = 60;

/** Does `work` while no other command changes the project's packs. @throws KcoreError PACK_BUSY, and as `work` */
export async function withPacksLock<T>(project: string, work: () => Promise<T>): Promise<T> {
  return withLock(join(project, ".kcore"), "packs", lockSeconds, work).catch((cause: unknown) => {
    if (!(cause instanceof KcoreError) || cause.problems[0]?.code !== "LAB_BUSY") throw cause;
    const message = "another kcore pack changes this project's packs";
    throw new KcoreError(
      { code: "PACK_BUSY", message, hint: "wait for it to end, then try again" },
      { cause, exitCode: exitCodes.failed },
    );
  });
}

/**
 * A problem for each pack of the project that is not pinned, and for each pack that differs from its pin.
 * @throws KcoreError for mistakes in packs.yaml
 */
export async function packProblems(project: string): Promise<readonly Problem[]> {
  const pins = readPins(project);
  const unpinned = packNames(project).filter((name) => pins[name] === undefined);
  return [
    ...unpinned.map((name): Problem => ({
      code: "PACK_CHANGED",
      message: `packs/${name} is pinned nowhere`,
      hint: "kcore pack add puts a pack there",
    })),
    ...(await changedPacks(project, pins)),
  ];
}

/** A problem for each of these packs that differs from its pin. */
export async function changedPacks(project: string, pins: Pins): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const [name, { hash }] of Object.entries(pins)) {
    const files = await readPack(join(project, packsFolder, name)).catch(() => undefined);
    if (files && hashPack(files) === hash) continue;
    if (files && otherLineEnds(files).some((others) => hashPack(others) === hash)) {
      problems.push(convertedLineEnds(name));
      continue;
    }
    const isGone = !existsSync(join(project, packsFolder, name));
    problems.push({
      code: "PACK_CHANGED",
      message: isGone ? `packs/${name} is not there` : `packs/${name} is not what packs.yaml pins`,
      hint: isGone
        ? "git checkout brings it back, and kcore pack update"
        : "git diff shows what was changed; change the pack where it comes from, or make it files of the project",
    });
  }
  return problems;
}

function convertedLineEnds(name: string): Problem {
  return {
    code: "PACK_CHANGED",
    message: `packs/${name} differs from what packs.yaml pins only in its line ends: git converted them`,
    hint: `put the line “* -text” into packs/.gitattributes, then: rm -r packs/${name} && git checkout packs/${name}`,
  };
}
