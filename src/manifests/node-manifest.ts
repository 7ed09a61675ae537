import type { z } from "zod";
import { LoginName, Role } from "#engine/roster/entry-fields.ts";
import type { WrittenNode } from "#engine/roster/entry-schema.ts";
import { nodeAt, type SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import type { ErrorCode } from "#errors/codes.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { NodeManifestSchema } from "./manifest-schemas.ts";

/** A node's fields from a manifest, in the roster's words; a field that is not mentioned is absent. */
export type WantedNode = GivenFields<WrittenNode>;

type GivenFields<T> = { readonly [Key in keyof T]?: Exclude<T[Key], undefined> };
type NodeDocument = z.output<typeof NodeManifestSchema>;
const rolePrefix = /^node-role\.(?:kubernetes|kcore)\.io\//;
const sshPrefix = /^(?:metalk8s\.scality\.com|kcore\.io)\/ssh-/;

/** The known annotations `…/ssh-NAME` of a node manifest. */
const sshWords = ["host", "port", "user", "key-path", "sudo"] as const;

/**
 * Reads a `Node` once its schema accepts it: labels `node-role.kubernetes.io/ROLE` are roles, annotations
 * `metalk8s.scality.com/ssh-*` say how the node is reached, other labels stay labels. Adds contradictions to `problems`.
 */
export function wantedNode({ metadata, spec }: NodeDocument, node: SourceNode, problems: Problems): WantedNode {
  const { nodeId, dcId, ...written } = spec;
  const reading = new Reading(node, problems);
  const { roles, labels } = rolesAndLabels(metadata.labels, reading);
  const ssh = sshOf(metadata.annotations ?? {}, reading);
  const id = reading.one("spec.id", "spec.nodeId", written.id, nodeId);
  const dc = reading.one("spec.dc", "spec.dcId", written.dc, dcId);
  const address = reading.one("spec.address", "the ssh-host annotation", written.address, ssh.host);
  const port = reading.one("spec.port", "the ssh-port annotation", written.port, ssh.port);
  const user = reading.one("spec.user", "the ssh-user annotation", written.user, ssh.user);
  const identityFile = reading.one("spec.identityFile", "the ssh-key-path annotation", written.identityFile, ssh.key);
  if (ssh.sudo === false && user !== undefined && user !== "root")
    reading.add("YAML_TYPE", ["metadata", "annotations"], `“${user}” without sudo cannot deploy anything`, {
      hint: "log in as root, or set ssh-sudo to 'true'",
    });
  const allRoles = written.roles || roles ? { roles: [...new Set([...(written.roles ?? []), ...(roles ?? [])])] } : {};
  const allLabels = written.labels || labels ? { labels: { ...labels, ...written.labels } } : {};
  // In the order in which a person writes an entry.
  const given = { address, port, user, identityFile, id, dc, ...allRoles, ...allLabels, ...otherFields(written) };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** The fields of the spec that have no second key, label or annotation. */
function otherFields(written: WrittenNode): Omit<WrittenNode, "roles" | "labels"> {
  const { address: _, port: _1, user: _2, identityFile: _3, id: _4, dc: _5, roles: _6, labels: _7, ...rest } = written;
  return rest;
}

/** Collects a document's problems at their places. */
class Reading {
  readonly #node: SourceNode;
  readonly #problems: Problems;

  constructor(node: SourceNode, problems: Problems) {
    this.#node = node;
    this.#problems = problems;
  }

  add(code: ErrorCode, path: readonly PropertyKey[], message: string, { hint }: { readonly hint?: string } = {}): void {
    const map = nodeAt(this.#node, path.slice(0, -1));
    const entry = map?.kind === "map" ? map.entries.get(String(path.at(-1))) : undefined;
    const at = code === "YAML_KEY_UNKNOWN" ? entry?.keyAt : nodeAt(this.#node, path)?.at;
    this.#problems.add({ code, message, at: at ?? this.#node.at, hint });
  }

  /** The value that either of two keys gives; adds a problem if both give different ones. */
  one<T>(name: string, otherName: string, value: T | undefined, other: T | undefined): T | undefined {
    if (value !== undefined && other !== undefined && value !== other)
      this.add("YAML_TYPE", name.split("."), `${name} says “${String(value)}”, ${otherName} “${String(other)}”`, {
        hint: "keep one of them",
      });
    return value ?? other;
  }
}

interface RolesAndLabels {
  readonly roles?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
}

function rolesAndLabels(all: Readonly<Record<string, string>> | undefined, reading: Reading): RolesAndLabels {
  if (all === undefined) return {};
  const roles: string[] = [];
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(all)) {
    const place = ["metadata", "labels", key];
    const role = rolePrefix.test(key) ? key.replace(rolePrefix, "") : undefined;
    if (role === undefined) {
      labels[key] = value;
      continue;
    }
    const shape = Role.safeParse(role);
    if (!shape.success) reading.add("YAML_TYPE", place, `“${role}” ${shape.error.issues[0]?.message ?? "is no role"}`);
    else if (value === "" || value === "true") roles.push(role);
    else
      reading.add("YAML_TYPE", place, `the label “${key}” gives the role whatever its value says`, {
        hint: `write ${key}: '', or remove the line`,
      });
  }
  return { ...(roles.length > 0 && { roles }), labels };
}

interface Ssh {
  host?: string;
  port?: number;
  user?: string;
  key?: string;
  sudo?: boolean;
}

function sshOf(annotations: Readonly<Record<string, string>>, reading: Reading): Ssh {
  const ssh: Ssh = {};
  for (const [key, value] of Object.entries(annotations)) {
    const place = ["metadata", "annotations", key];
    const word = sshPrefix.test(key) ? key.replace(sshPrefix, "") : undefined;
    const refuse = (what: string): void => reading.add("YAML_TYPE", place, `“${key}” must be ${what}`);
    if (word === "host") ssh.host = value;
    else if (word === "key-path") ssh.key = value;
    else if (word === "port") {
      if (/^[1-9]\d{0,4}$/.test(value) && Number(value) < 65_536) ssh.port = Number(value);
      else refuse("a port: '1' to '65535'");
    } else if (word === "user") {
      if (LoginName.safeParse(value).success) ssh.user = value;
      else refuse("a login name");
    } else if (word === "sudo") {
      // Any text that is not empty was true to the forerunner, 'false' too.
      if (value === "true" || value === "false") ssh.sudo = value === "true";
      else refuse("'true' or 'false'");
    } else {
      const known = sshWords.map((name) => `metalk8s.scality.com/ssh-${name}`);
      reading.add("YAML_KEY_UNKNOWN", place, `no annotation “${key}” is known`, {
        hint: suggestHint(key, known, `known here: ${known.join(", ")}`) ?? "",
      });
    }
  }
  return ssh;
}
