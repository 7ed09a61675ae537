import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Problem } from "#errors/problem.ts";
import { packNames, packsFolder } from "#engine/project/folders.ts";
import { otherLineEnds, hashPack, readPack } from "./pack-files.ts";
import { readPins, type Pins } from "./pinned-packs.ts";

/**
 * A problem for each pack of the project that is not pinned, and for each that differs from its pin. @throws KcoreError
 * for packs.yaml
 */
export async function packProblems(project: string): Promise<readonly Problem[]> {
  const pins = readPins(project);
  const strays = packNames(project).filter((name) => pins[name] === undefined);
  return [
    ...strays.map((name): Problem => ({
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
