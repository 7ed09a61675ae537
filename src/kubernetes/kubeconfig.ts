import { existsSync, type Stats } from "node:fs";
import type { RequestOptions } from "node:https";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { type SourceNode, nodeAt } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";
import { validate } from "#engine/yaml/validate.ts";
import { Secret, secret } from "#engine/step/secret.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { ClusterAccess } from "./kubeconfig-access.ts";
import { clusterFiles, Kubeconfig, type KubeconfigUser, userFiles } from "./kubeconfig-schema.ts";

/** A string is a path on the bastion; a secret or the value of `content` is the kubeconfig's own text, never a path (S-4). */
export type GivenKubeconfig = string | Secret | { readonly content: string | Secret };

/** The kubeconfig that an action names. */
export interface KubeconfigSource {
  readonly kubeconfig: GivenKubeconfig;
  /** A context in the kubeconfig; absent: the current one. */
  readonly context?: string | undefined;
  /** Where relative paths begin. */
  readonly project: string;
  /** The folder of `~`. */
  readonly home: string;
  /** Throws if the opened file is not trusted: a kubeconfig may name programs that are run (S-20). */
  readonly check?: (name: string, stats: Stats) => void;
}

/** A cluster, and the namespace of the kubeconfig's context. */
export interface KubeCluster extends ClusterAccess {
  readonly namespace: string;
}

/**
 * Opens the cluster of a kubeconfig's context. @throws KcoreError KUBECONFIG_INVALID at its place, errors of `readBytes`;
 * `requestOptions` rejects with KUBECONFIG_PLUGIN_MISSING, KUBECONFIG_PLUGIN_FAILED or KUBECONFIG_INVALID
 */
export async function openKubeCluster(place: KubeconfigSource): Promise<KubeCluster> {
  const { node, folder, name, isText } = readKubeconfig(place);
  const config = concealProblems(() => validate(node, Kubeconfig));
  maskSecrets(config);
  const chosen = chooseContext(config, node, place.context, name);
  const { cluster, user } = chosen;
  if (isText) refuseForeign(chosen, node);
  checkFiles(chosen, node, folder);
  // The library would resolve this path against the process's folder.
  const tokenFile = user?.["token-file"] ?? user?.tokenFile;
  if (user && tokenFile) {
    user["token-file"] = undefined;
    user["auth-provider"] = { name: "tokenFile", config: { tokenFile: resolve(folder, tokenFile) } };
  }
  if (user?.exec) preparePlugin(user.exec, folder);
  const { openAccess } = await import("./kubeconfig-access.ts");
  // The library reads the files of every user that it gets, so it gets the chosen user alone.
  const users = config.users?.filter((each) => each.user === user);
  const access = openAccess(JSON.stringify({ ...config, users }), { folder, context: chosen.context });
  return {
    server: access.server,
    namespace: chosen.namespace ?? "default",
    requestOptions: () =>
      access.requestOptions().then(maskCredentials, (error: unknown) => {
        throw credentialError(error, { user, at: nodeAt(node, chosen.userPath) ?? node, server: cluster.server });
      }),
  };
}

/** CA and credentials of the current context of a kubeconfig that a node sent. */
export interface NodeAccess {
  /** PEM in base64. */
  readonly ca: string;
  readonly credentials: Readonly<Record<string, string>>;
}

const credentialKeys = ["client-certificate-data", "client-key-data", "token", "username", "password"] as const;

/** Takes only CA and credentials out of a kubeconfig's text. @throws KcoreError KUBECONFIG_INVALID */
export function readNodeAccess(text: string | Secret): NodeAccess {
  const { node, name } = parseText(text);
  const config = concealProblems(() => validate(node, Kubeconfig));
  maskSecrets(config);
  const chosen = chooseContext(config, node, undefined, name);
  refuseForeign(chosen, node);
  const { cluster, user, userPath, clusterPath } = chosen;
  const ca = cluster["certificate-authority-data"] ?? "";
  const credentials = Object.fromEntries(
    credentialKeys.flatMap((key) => {
      const value = user?.[key];
      return typeof value === "string" && value !== "" ? [[key, value]] : [];
    }),
  );
  if (ca === "") throw invalid(`${name} has no certificate-authority-data`, nodeAt(node, clusterPath) ?? node);
  if (Object.keys(credentials).length === 0)
    throw invalid(`${name} has no credentials`, nodeAt(node, userPath) ?? node);
  return { ca, credentials };
}

function parseText(given: string | Secret): { readonly name: string; readonly node: SourceNode } {
  const name = "the given kubeconfig";
  const text = given instanceof Secret ? given.reveal() : given;
  return { name, node: concealProblems(() => parseSource(name, text)) };
}

function readKubeconfig({ kubeconfig, project, home, check }: KubeconfigSource) {
  if (typeof kubeconfig !== "string") {
    const text = kubeconfig instanceof Secret ? kubeconfig : kubeconfig.content;
    return { ...parseText(text), folder: project, isText: true };
  }
  const path = resolve(project, kubeconfig.startsWith("~/") ? join(home, kubeconfig.slice(2)) : kubeconfig);
  const name = isAbsolute(kubeconfig) || kubeconfig.startsWith("~/") ? path : kubeconfig;
  const bytes = readBytes(path, { name, ...(check && { check }) });
  return { name, folder: dirname(path), isText: false, node: concealProblems(() => parseSource(name, bytes)) };
}

/** Makes the problems of `work` KUBECONFIG_INVALID and conceals their lines: a line of a kubeconfig may hold a token or a key. */
function concealProblems<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    const problems = error.problems.map((problem): Problem => ({
      ...problem,
      code: "KUBECONFIG_INVALID",
      conceal: true,
    }));
    throw new KcoreError(problems, { cause: error });
  }
}

function maskSecrets({ users }: Kubeconfig): void {
  for (const { user } of users ?? [])
    for (const value of [user?.token, user?.password, user?.["client-key-data"]]) if (value) secret(value);
}

/** Masks the credentials of a request, which a program or file may have given: a server may repeat them in its answer. */
function maskCredentials(options: RequestOptions): RequestOptions {
  const { Authorization = "" } = (options.headers ?? {}) as Partial<Record<string, string>>;
  const { auth, key } = options;
  const text = typeof key === "string" || Buffer.isBuffer(key) ? key.toString() : "";
  const sent = [Authorization.replace(/^\S+ /, ""), auth && Buffer.from(auth).toString("base64"), text];
  for (const value of sent) if (value) secret(value);
  return options;
}

function chooseContext(config: Kubeconfig, node: SourceNode, wanted: string | undefined, name: string) {
  const context = wanted ?? config["current-context"] ?? "";
  if (context === "")
    throw invalid(`${name} has no current-context`, nodeAt(node, []) ?? node, "give the action a context: NAME");
  const [contexts, users] = [config.contexts ?? [], config.users ?? []];
  const contextIndex = contexts.findIndex((each) => each.name === context);
  const used = contexts[contextIndex]?.context;
  if (used === undefined) {
    const names = contexts.map((each) => each.name);
    const hint = suggestHint(context, names, `there are: ${names.join(", ") || "none"}`);
    throw invalid(`${name} has no context “${context}”`, nodeAt(node, ["current-context"]) ?? node, hint);
  }
  const clusterIndex = config.clusters.findIndex((each) => each.name === used.cluster);
  const cluster = config.clusters[clusterIndex]?.cluster;
  if (cluster === undefined)
    throw invalid(
      `the context “${context}” names the cluster “${used.cluster}”, which is not there`,
      nodeAt(node, ["contexts", contextIndex, "context", "cluster"]) ?? node,
    );
  const userIndex = users.findIndex((each) => each.name === used.user);
  if (used.user && userIndex < 0)
    throw invalid(
      `the context “${context}” names the user “${used.user}”, which is not there`,
      nodeAt(node, ["contexts", contextIndex, "context", "user"]) ?? node,
    );
  return {
    context,
    namespace: used.namespace,
    cluster,
    clusterPath: ["clusters", clusterIndex, "cluster"],
    user: users[userIndex]?.user,
    userPath: ["users", userIndex, "user"],
  };
}

/** A kubeconfig given as text may come from a node: it must name no program, no file of the bastion and no proxy. */
function refuseForeign(
  { cluster, clusterPath, user, userPath }: ReturnType<typeof chooseContext>,
  node: SourceNode,
): void {
  const given = [
    [cluster, clusterPath, [...clusterFiles, "proxy-url"]],
    [user, userPath, ["exec", "auth-provider", ...userFiles]],
  ] as const;
  const problems = given.flatMap(([fields, path, keys]) =>
    keys
      .filter((key) => (fields?.[key] ?? undefined) !== undefined)
      .flatMap((key) => {
        const message = `the given kubeconfig has “${key}”, which only one in a file may have`;
        const hint =
          "give a kubeconfig with its keys inside (…-data, token), or the path of your own kubeconfig's file";
        return invalid(message, nodeAt(node, [...path, key]) ?? node, hint).problems.slice();
      }),
  );
  if (problems.length > 0) throw new KcoreError(problems);
}

/** Reports all named files that do not exist, each at its place. */
function checkFiles(
  { cluster, clusterPath, user, userPath }: ReturnType<typeof chooseContext>,
  node: SourceNode,
  folder: string,
): void {
  const named = [
    ...clusterFiles.map((key) => [cluster[key], [...clusterPath, key]] as const),
    ...userFiles.map((key) => [user?.[key], [...userPath, key]] as const),
  ];
  const problems = named.flatMap(([file, path]): Problem[] =>
    file && !existsSync(resolve(folder, file))
      ? invalid(`the file ${file} is not there`, nodeAt(node, path) ?? node).problems.slice()
      : [],
  );
  if (problems.length > 0) throw new KcoreError(problems);
}

/** Finds an exec plugin beside the kubeconfig and sets KUBERNETES_EXEC_INFO (KEP-541); the library does neither. */
function preparePlugin(exec: NonNullable<KubeconfigUser["exec"]>, folder: string): void {
  if (exec.command.includes("/")) exec.command = resolve(folder, exec.command);
  const info = { apiVersion: exec.apiVersion, kind: "ExecCredential", spec: { interactive: false } };
  exec.env = [...(exec.env ?? []), { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(info) }];
}

/** The error of credentials that the library could not use for a request. */
function credentialError(
  error: unknown,
  { user, at, server }: { user: KubeconfigUser | null | undefined; at: SourceNode; server: string },
): KcoreError {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  const { exec } = user ?? {};
  if (exec && code === "ENOENT" && syscall?.startsWith("spawn") === true)
    return new KcoreError(
      {
        code: "KUBECONFIG_PLUGIN_MISSING",
        message: `the program “${exec.command}”, which gives the credentials for ${server}, is not on this machine`,
        at: nodeAt(at, ["exec", "command"])?.at ?? at.at,
        hint: exec.installHint ?? "install it on the bastion, or use a kubeconfig with a token or a certificate",
        conceal: true,
      },
      { cause: error },
    );
  const source = exec ? `the program “${exec.command}”, which gives the credentials for ${server}, failed` : undefined;
  return new KcoreError(
    {
      code: exec ? "KUBECONFIG_PLUGIN_FAILED" : "KUBECONFIG_INVALID",
      message: source ?? `the credentials for ${server} cannot be used: ${message}`,
      at: at.at,
      ...(exec && { detail: message.trim() }),
      conceal: true,
    },
    { cause: error },
  );
}

function invalid(message: string, { at }: SourceNode, hint?: string): KcoreError {
  return new KcoreError({ code: "KUBECONFIG_INVALID", message, at, hint, conceal: true });
}
