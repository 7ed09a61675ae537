import { readdir, rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { durableFile, type Codec } from "#base/durable-file.ts";
import { ifThere, readText, refuseUntrusted } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";

/** The folder of an operator's contexts: `~/.kcore`, or KCORE_HOME. */
export interface ContextHome {
  readonly home: string;
  /** YAML, passed in because its library lives elsewhere. */
  readonly codec: Codec<unknown>;
}

const Entry = z.looseObject({
  controller: z.string().optional(),
  controllers: z.array(z.string()).optional(),
  ca: z.string().optional(),
  cert: z.string().optional(),
  key: z.string().optional(),
  "ca-data": z.string().optional(),
  "cert-data": z.string().optional(),
  "key-data": z.string().optional(),
});
const Config = z.looseObject({
  "current-context": z.string().optional(),
  contexts: z.record(z.string(), Entry).default({}),
});
export type ContextEntry = z.infer<typeof Entry>;
export type ContextConfig = z.infer<typeof Config>;

/** One context, with the files that it points to read from the disk. */
export interface Context {
  readonly name: string;
  /** The controllers' endpoints, `host:port`, in the order in which they are tried. */
  readonly controllers: readonly string[];
  /** PEM texts. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** The folder of this context's CA and issued certificates. */
  readonly folder: string;
}

/**
 * `~/.kcore/config`; without a file: no contexts. Its writer chooses the CA that is trusted, so only the operator and root may write it.
 * @throws KcoreError CONFIG_INVALID, FILE_UNTRUSTED
 */
export async function readConfig(place: ContextHome): Promise<ContextConfig> {
  return (await openConfig(place)).data;
}

async function openConfig({ home, codec: { parse, print } }: ContextHome) {
  const file = configFile(home);
  for (const path of [home, file]) await refuseUntrusted(path);
  const checked = (text: string): ContextConfig => checkConfig(text.trim() === "" ? {} : parse(text), file);
  const db = durableFile<ContextConfig>(file, { parse: checked, print }, { contexts: {} });
  await db.read();
  return db;
}

function checkConfig(config: unknown, file: string): ContextConfig {
  const parsed = Config.safeParse(config);
  if (parsed.success) return parsed.data;
  throw new KcoreError({
    code: "CONFIG_INVALID",
    message: `${file} is not a kcore configuration: ${z.prettifyError(parsed.error)}`,
    hint: "correct it by hand; kcore does not overwrite what it cannot read",
  });
}

const changes = new Map<string, Promise<unknown>>();

/** Changes `~/.kcore/config`, one change after the other; written 0600 and as a whole. */
export function changeConfig(
  place: ContextHome,
  change: (config: ContextConfig) => ContextConfig,
): Promise<ContextConfig> {
  const mine = (changes.get(place.home) ?? Promise.resolve()).then(() => applyChange(place, change));
  changes.set(
    place.home,
    mine.catch(() => undefined),
  );
  return mine;
}

async function applyChange(
  place: ContextHome,
  change: (config: ContextConfig) => ContextConfig,
): Promise<ContextConfig> {
  const db = await openConfig(place);
  const after = change(db.data);
  if (JSON.stringify(after) === JSON.stringify(db.data)) return after;
  await ensurePrivateFolder(place.home);
  db.data = after;
  await db.write();
  return after;
}

/** The chosen context's name and entry, the current one when none is chosen. @throws KcoreError PKI_CONTEXT_UNKNOWN */
export async function findContext(
  place: ContextHome,
  name?: string,
): Promise<{ readonly name: string; readonly entry: ContextEntry }> {
  const config = await readConfig(place);
  const chosen = name ?? config["current-context"];
  const entry = chosen !== undefined && Object.hasOwn(config.contexts, chosen) ? config.contexts[chosen] : undefined;
  if (chosen !== undefined && entry) return { name: chosen, entry };
  const known = Object.keys(config.contexts);
  const create =
    "make one with: kcore create cluster --controller HOST; a lost one comes back with: kcore cluster restore FILE";
  throw new KcoreError({
    code: "PKI_CONTEXT_UNKNOWN",
    message:
      chosen === undefined
        ? `no context is chosen in ${configFile(place.home)}`
        : `no context “${chosen}” in ${configFile(place.home)}`,
    hint: known.length === 0 ? create : (suggestHint(chosen ?? "", known) ?? `known contexts: ${known.join(", ")}`),
  });
}

/**
 * A context with its certificate, key and CA.
 * @throws KcoreError PKI_CONTEXT_UNKNOWN, CONFIG_INVALID, FILE_UNREADABLE, FILE_UNTRUSTED
 */
export async function loadContext(place: ContextHome, name?: string): Promise<Context> {
  const { name: chosen, entry } = await findContext(place, name);
  const read = async (what: "ca" | "cert" | "key"): Promise<string> => {
    const inline = entry[`${what}-data`];
    if (inline !== undefined) return Buffer.from(inline, "base64").toString("utf8");
    const path = entry[what];
    if (path === undefined) {
      throw new KcoreError({
        code: "CONFIG_INVALID",
        message: `context “${chosen}” in ${configFile(place.home)} has no ${what}`,
        hint: "ca, cert and key belong together: give all three",
      });
    }
    const file = resolve(place.home, path);
    await refuseUntrusted(file, { secret: what === "key" });
    return readText(file);
  };
  const [ca, cert, key] = await Promise.all([read("ca"), read("cert"), read("key")]);
  return { name: chosen, controllers: endpointsOf(entry), ca, cert, key, folder: contextFolder(place.home, chosen) };
}

/** The endpoints of an entry: `controller` first, then `controllers`, each once. */
export function endpointsOf({ controller, controllers = [] }: ContextEntry): readonly string[] {
  return [...new Set([...(controller === undefined ? [] : [controller]), ...controllers])];
}

/** Adds a controller's endpoint to a context; returns whether it was new. */
export function addController(place: ContextHome, context: string, endpoint: string): Promise<boolean> {
  return changeControllers(place, context, (known) => [...new Set([...known, endpoint])]);
}

/** Removes a controller's endpoint from a context; returns whether it was there. */
export function removeController(place: ContextHome, context: string, endpoint: string): Promise<boolean> {
  return changeControllers(place, context, (known) => known.filter((one) => one !== endpoint));
}

/** Changes the endpoints of a context; returns whether they differ now. */
export async function changeControllers(
  place: ContextHome,
  context: string,
  change: (known: readonly string[]) => readonly string[],
): Promise<boolean> {
  let isChanged = false;
  await changeConfig(place, (config) => {
    const entry = config.contexts[context];
    if (!entry) return config;
    const known = endpointsOf(entry);
    const controllers = [...change(known)];
    if (isDeepStrictEqual(known, controllers)) return config;
    isChanged = true;
    const { controller: _, ...rest } = entry;
    const changed = { ...rest, ...omitUndefined({ controller: controllers[0] }), controllers };
    return { ...config, contexts: { ...config.contexts, [context]: changed } };
  });
  return isChanged;
}

/** Makes a context the current one. @throws KcoreError PKI_CONTEXT_UNKNOWN */
export async function useContext(place: ContextHome, name: string): Promise<void> {
  await findContext(place, name);
  await changeConfig(place, (config) => ({ ...config, "current-context": name }));
}

/**
 * Removes a context from the configuration and puts its folder, with the CA's keys, aside; returns that folder's new
 * path, if there is one. @throws KcoreError PKI_CONTEXT_UNKNOWN
 */
export async function deleteContext(place: ContextHome, name: string, now: number): Promise<string | undefined> {
  await findContext(place, name);
  const aside = await putAside(contextFolder(place.home, name), now);
  await changeConfig(place, ({ "current-context": current, contexts, ...rest }) => {
    const { [name]: _, ...others } = contexts;
    return {
      ...rest,
      ...omitUndefined({ "current-context": current === name ? undefined : current }),
      contexts: others,
    };
  });
  return aside;
}

/** Gives a context's folder another name, with the time when it was put aside; undefined if the folder is empty. */
export async function putAside(folder: string, now: number): Promise<string | undefined> {
  if (!(await hasFiles(folder))) return undefined;
  const aside = `${folder}.${new Date(now).toISOString().replaceAll(/[:.]/g, "-")}.old`;
  await rename(folder, aside);
  return aside;
}

export async function hasFiles(folder: string): Promise<boolean> {
  const names = (await ifThere(readdir(folder))) ?? [];
  return names.length > 0;
}

export function configFile(home: string): string {
  return join(home, "config");
}

export function contextFolder(home: string, context: string): string {
  return join(home, context);
}
