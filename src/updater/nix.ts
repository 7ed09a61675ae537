import { basename, dirname, join } from "node:path";
import type { FailureKind } from "#rollout/records.ts";
import { UpdateFailure } from "./failure.ts";
import type { ProgramEnd, Ports } from "./ports.ts";
import type { NodeVersion } from "./strategy.ts";

/** Runs a program and returns its stdout. @throws UpdateFailure with the end of its output if it fails */
export async function runOrFail(
  { run }: Pick<Ports, "run">,
  words: readonly string[],
  { kind, limitMs }: { readonly kind: FailureKind; readonly limitMs: number },
): Promise<string> {
  const ended = await run(words, limitMs);
  if (ended.code === 0) return ended.stdout.trim();
  throw new UpdateFailure(kind, `${words.join(" ")} ${describeEnd(ended)}`);
}

/** Words about the end of a program, with its own reason: from stderr, else from stdout, where many checks write. */
export function describeEnd({ code, stdout, stderr }: ProgramEnd): string {
  const how = code === undefined ? "was ended, its time being over" : `ended with ${code}`;
  const reason = stderr.trim() || stdout.trim();
  return `${how}${reason === "" ? "" : `: ${reason}`}`;
}

/** Whether Nix has registered a path in the store. */
export async function isInStore({ run }: Pick<Ports, "run">, path: string, limitMs: number): Promise<boolean> {
  return (await run(["nix-store", "--check-validity", path], limitMs)).code === 0;
}

/** A profile's present generation; undefined without such a profile. */
export async function readProfile(ports: Ports, profile: string): Promise<NodeVersion | undefined> {
  const link = await ports.readLink(profile);
  const id = link && (await ports.readLink(join(dirname(profile), link)));
  if (!link || !id) return undefined;
  return { id, version: versionInPath(id), generation: generationOf(link) };
}

/** `kcore-12-link` is generation 12. */
function generationOf(link: string): number {
  return Number(/-(\d+)-link$/.exec(link)?.[1] ?? 0);
}

/** `/nix/store/HASH-kcore-0.2.0` is 0.2.0, as Nix reads names: the version begins at the first digit after a hyphen. */
export function versionInPath(path: string): string {
  return /^[^-]+-.*?-(\d.*)$/.exec(basename(path))?.[1] ?? "";
}

/**
 * The number of the generation that a profile has once it is set to a path. Nix makes no new one if the present or the
 * newest generation is that path already.
 */
export async function generationFor(ports: Ports, profile: string, id: string): Promise<number> {
  const present = await readProfile(ports, profile);
  if (present?.id === id && present.generation !== undefined) return present.generation;
  const start = `${basename(profile)}-`;
  const links = (await ports.list(dirname(profile))).filter(
    (name) => name.startsWith(start) && /^\d+-link$/.test(name.slice(start.length)),
  );
  const newest = Math.max(0, ...links.map(generationOf));
  return (await ports.readLink(`${profile}-${newest}-link`)) === id ? newest : newest + 1;
}

/**
 * Sets a profile to a path: to the given generation, if that has the path, else to a new one. The change is on the disk
 * when this resolves.
 */
export async function setProfile(
  ports: Ports,
  profile: string,
  { id, generation }: Pick<NodeVersion, "id" | "generation">,
  options: { readonly kind: FailureKind; readonly limitMs: number },
): Promise<void> {
  if ((await readProfile(ports, profile))?.id !== id) {
    const isListed = generation !== undefined && (await ports.readLink(`${profile}-${generation}-link`)) === id;
    const words = isListed ? ["--switch-generation", String(generation)] : ["--set", id];
    await runOrFail(ports, ["nix-env", "-p", profile, ...words], options);
  }
  // Nix does not wait for the disk, nor did an updater that was interrupted after setting it.
  await runOrFail(ports, ["sync"], options);
}
