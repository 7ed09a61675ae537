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

/** The place of an operator's contexts. */
export interface ContextHome {
  /** `~/.kcore`, or KCORE_HOME. */
  readonly home: string;
  /** Reads and prints YAML; passed in, since `pki` must not import the library. */
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

/** One context, with the contents of the files that its entry names. */
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
 * Reads `~/.kcore/config`; without a file there are no contexts. Its writer chooses the trusted CA, so only the operator and root may write it.
 * @throws KcoreError CONFIG_INVALID, FILE_UNTRUSTED, FILE_UNREADABLE; errors of the codec
 */
export async function readConfig(contextHome: ContextHome): Promise<ContextConfig> {
  return (await openConfig(contextHome)).data;
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

/** The last change of each home's configuration; the next one waits for it. */
const changes = new Map<string, Promise<unknown>>();

/** Changes `~/.kcore/config` after all earlier changes of this process, and returns the new contents; the file is replaced as a whole (0600). */
export function changeConfig(
  contextHome: ContextHome,
  change: (config: ContextConfig) => ContextConfig,
): Promise<ContextConfig> {
  const changed = (changes.get(contextHome.home) ?? Promise.resolve()).then(() => applyChange(contextHome, change));
  changes.set(
    contextHome.home,
    changed.catch(() => undefined),
  );
  return changed;
}

async function applyChange(
  contextHome: ContextHome,
  change: (config: ContextConfig) => ContextConfig,
): Promise<ContextConfig> {
  const db = await openConfig(contextHome);
  const after = change(db.data);
  if (JSON.stringify(after) === JSON.stringify(db.data)) return after;
  await ensurePrivateFolder(contextHome.home);
  db.data = after;
  await db.write();
  return after;
}

/** The entry of the context `name`, by default the current one. @throws KcoreError PKI_CONTEXT_UNKNOWN */
export async function findContext(
  contextHome: ContextHome,
  name?: string,
): Promise<{ readonly name: string; readonly entry: ContextEntry }> {
  const config = await readConfig(contextHome);
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
        ? `no context is chosen in ${configFile(contextHome.home)}`
        : `no context “${chosen}” in ${configFile(contextHome.home)}`,
    hint: known.length === 0 ? create : (suggestHint(chosen ?? "", known) ?? `known contexts: ${known.join(", ")}`),
  });
}

/**
 * The context `name`, by default the current one, with its certificate, key and CA.
 * @throws KcoreError PKI_CONTEXT_UNKNOWN, CONFIG_INVALID, FILE_UNREADABLE, FILE_UNTRUSTED
 */
export async function loadContext(contextHome: ContextHome, name?: string): Promise<Context> {
  const { name: chosen, entry } = await findContext(contextHome, name);
  const read = async (what: "ca" | "cert" | "key"): Promise<string> => {
    const inline = entry[`${what}-data`];
    if (inline !== undefined) return Buffer.from(inline, "base64").toString("utf8");
    const path = entry[what];
    if (path === undefined) {
      throw new KcoreError({
        code: "CONFIG_INVALID",
        message: `context “${chosen}” in ${configFile(contextHome.home)} has no ${what}`,
        hint: "ca, cert and key belong together: give all three",
      });
    }
    const file = resolve(contextHome.home, path);
    await refuseUntrusted(file, { secret: what === "key" });
    return readText(file);
  };
  const [ca, cert, key] = await Promise.all([read("ca"), read("cert"), read("key")]);
  return {
    name: chosen,
    controllers: endpointsOf(entry),
    ca,
    cert,
    key,
    folder: contextFolder(contextHome.home, chosen),
  };
}

/** The endpoints of an entry: `controller` first, then `controllers`, each once. */
export function endpointsOf({ controller, controllers = [] }: ContextEntry): readonly string[] {
  return [...new Set([...(controller === undefined ? [] : [controller]), ...controllers])];
}

/** Adds a controller's endpoint to a context; returns whether it was new. */
export function addController(contextHome: ContextHome, context: string, endpoint: string): Promise<boolean> {
  return changeControllers(contextHome, context, (known) => [...new Set([...known, endpoint])]);
}

/** Removes a controller's endpoint from a context; returns whether it was there. */
export function removeController(contextHome: ContextHome, context: string, endpoint: string): Promise<boolean> {
  return changeControllers(contextHome, context, (known) => known.filter((other) => other !== endpoint));
}

/** Changes the endpoints of a context; returns whether they differ now. */
export async function changeControllers(
  contextHome: ContextHome,
  context: string,
  change: (known: readonly string[]) => readonly string[],
): Promise<boolean> {
  let isChanged = false;
  await changeConfig(contextHome, (config) => {
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
export async function useContext(contextHome: ContextHome, name: string): Promise<void> {
  await findContext(contextHome, name);
  await changeConfig(contextHome, (config) => ({ ...config, "current-context": name }));
}

/**
 * Removes a context from the configuration and renames its folder, which has the CA's keys; returns the folder's new
 * path, undefined if it was empty or missing. @throws KcoreError PKI_CONTEXT_UNKNOWN
 */
export async function deleteContext(contextHome: ContextHome, name: string, now: number): Promise<string | undefined> {
  await findContext(contextHome, name);
  const aside = await putAside(contextFolder(contextHome.home, name), now);
  await changeConfig(contextHome, ({ "current-context": current, contexts, ...rest }) => {
    const { [name]: _, ...others } = contexts;
    return {
      ...rest,
      ...omitUndefined({ "current-context": current === name ? undefined : current }),
      contexts: others,
    };
  });
  return aside;
}

/** Renames a context's folder to a name with the time `now`, and returns its new path; undefined if it is empty or missing. */
export async function putAside(folder: string, now: number): Promise<string | undefined> {
  if (!(await hasFiles(folder))) return undefined;
  const aside = `${folder}.${new Date(now).toISOString().replaceAll(/[:.]/g, "-")}.old`;
  await rename(folder, aside);
  return aside;
}

/** Whether a folder exists and is not empty. */
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
