import { basename, dirname, join } from "node:path";
import type { FailureKind } from "#rollout/records.ts";
import { UpdateFailure } from "./failure.ts";
import type { Ended, Ports } from "./ports.ts";
import type { Present } from "./strategy.ts";

/** Runs a program that has to succeed. @throws UpdateFailure with the end of its output */
export async function must(
  { run }: Pick<Ports, "run">,
  words: readonly string[],
  { kind, limitMs }: { readonly kind: FailureKind; readonly limitMs: number },
): Promise<string> {
  const ended = await run(words, limitMs);
  if (ended.code === 0) return ended.stdout.trim();
  throw new UpdateFailure(kind, `${words.join(" ")} ${describeEnd(ended)}`);
}

/** The end of a program, with its own reason: from stderr, else from stdout, where many checks write. */
export function describeEnd({ code, stdout, stderr }: Ended): string {
  const how = code === undefined ? "was ended, its time being over" : `ended with ${code}`;
  const said = stderr.trim() || stdout.trim();
  return `${how}${said === "" ? "" : `: ${said}`}`;
}

/** Whether Nix has registered a path in the store. */
export async function isInStore({ run }: Pick<Ports, "run">, path: string, limitMs: number): Promise<boolean> {
  return (await run(["nix-store", "--check-validity", path], limitMs)).code === 0;
}

/** A profile's present generation; undefined without such a profile. */
export async function readProfile(ports: Ports, profile: string): Promise<Present | undefined> {
  const link = await ports.readLink(profile);
  const id = link && (await ports.readLink(join(dirname(profile), link)));
  if (!link || !id) return undefined;
  return { id, version: versionOf(id), generation: generationOf(link) };
}

/** `kcore-12-link` is generation 12. */
function generationOf(link: string): number {
  return Number(/-(\d+)-link$/.exec(link)?.[1] ?? 0);
}

/** `/nix/store/HASH-kcore-0.2.0` is 0.2.0, as Nix reads names: the version begins at the first digit after a hyphen. */
export function versionOf(path: string): string {
  return /^[^-]+-.*?-(\d.*)$/.exec(basename(path))?.[1] ?? "";
}

/**
 * The number of a path's present or next generation: Nix makes none if the present or the newest one is that path
 * already.
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
 * Sets a profile to a path: to that generation, if it exists with that path, else to a new one. On the disk when this
 * resolves.
 */
export async function setProfile(
  ports: Ports,
  profile: string,
  { id, generation }: Pick<Present, "id" | "generation">,
  options: { readonly kind: FailureKind; readonly limitMs: number },
): Promise<void> {
  if ((await readProfile(ports, profile))?.id !== id) {
    const isThere = generation !== undefined && (await ports.readLink(`${profile}-${generation}-link`)) === id;
    const words = isThere ? ["--switch-generation", String(generation)] : ["--set", id];
    await must(ports, ["nix-env", "-p", profile, ...words], options);
  }
  // Nix does not wait for the disk, nor did an updater that was interrupted after setting it.
  await must(ports, ["sync"], options);
}
