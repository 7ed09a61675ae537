import type { z } from "zod";
import { NodeId } from "#engine/roster/entry-fields.ts";
import { plainOf, type SourceNode } from "#engine/yaml/node.ts";
import { parseDocuments } from "#engine/yaml/parse.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { problemsOf } from "#engine/yaml/validate.ts";
import type { SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { plainWord, withCamelKeys } from "./spellings.ts";
import { problemsOfUpdate, wantedUpdate } from "./cluster-update-manifest.ts";
import { ClusterUpdateSchema } from "./cluster-update-schema.ts";
import { wantedLayout, type WantedLayout } from "./disk-layout-manifest.ts";
import { wantedNode, type WantedNode } from "./node-manifest.ts";
import type { WantedRecord } from "./record-manifest.ts";
import {
  ClusterSchema,
  DiskLayoutSchema,
  manifestSchemas,
  NodeInstallSchema,
  NodeManifestSchema,
} from "./manifest-schemas.ts";

/** One document of a manifest file. */
export type Manifest = { readonly name: string; readonly at: SourcePosition } & (
  | { readonly kind: "Cluster"; readonly spec: z.output<typeof ClusterSchema>["spec"] }
  | { readonly kind: "NodeInstall"; readonly spec: z.output<typeof NodeInstallSchema>["spec"] }
  | { readonly kind: "Node"; readonly node: WantedNode }
  | ({ readonly kind: "DiskLayout" } & WantedLayout)
  | { readonly kind: "ClusterUpdate"; readonly spec: UpdateSpec }
  | WantedRecord
);

type Kind = keyof typeof manifestSchemas;
const manifestKinds = Object.keys(manifestSchemas) as Kind[];

/**
 * The manifests of a text, in its order. Keys may be camelCase or snake_case; a kind is known in any case, with or
 * without hyphens.
 * @throws KcoreError with every problem at its place; MANIFEST_EMPTY
 */
export function readManifests(file: string, text: string | Uint8Array): readonly Manifest[] {
  const problems = new Problems();
  const documents = parseDocuments(file, text);
  if (documents.length === 0)
    problems.add({
      code: "MANIFEST_EMPTY",
      message: `${file} holds no manifest`,
      hint: `kinds: ${manifestKinds.join(", ")}`,
    });
  const manifests = documents.map((document) => readOne(document, problems));
  refuseTwice(manifests, problems);
  problems.throwIfAny();
  return manifests.filter((manifest) => manifest !== undefined);
}

function readOne(document: SourceNode, problems: Problems): Manifest | undefined {
  const kind = readKind(document, problems);
  switch (kind) {
    case "Cluster": {
      const read = readShape(document, ClusterSchema, problems);
      return read && { kind, at: document.at, name: read.value.metadata.name, spec: read.value.spec };
    }
    case "NodeInstall": {
      const read = readShape(document, NodeInstallSchema, problems);
      return read && { kind, at: document.at, ...nameInstall(read.value) };
    }
    case "Node": {
      const read = readShape(document, NodeManifestSchema, problems);
      if (!read) return undefined;
      const node = wantedNode(read.value, read.node, problems);
      return { kind, at: document.at, name: read.value.metadata.name, node };
    }
    case "DiskLayout": {
      const read = readShape(document, DiskLayoutSchema, problems);
      if (!read) return undefined;
      const wanted = wantedLayout(read.value, read.node, problems);
      return { kind, at: document.at, name: read.value.metadata.name, ...wanted };
    }
    case "ClusterUpdate": {
      const read = readShape(document, ClusterUpdateSchema, problems, problemsOfUpdate);
      if (!read) return undefined;
      const spec = wantedUpdate(read.value, read.node, problems);
      return { kind, at: document.at, name: read.value.metadata.name, spec };
    }
    case "Image":
    case "Network":
    case "VM": {
      const read = readShape(document, manifestSchemas[kind], problems);
      return read && { kind, at: document.at, ...read.value.metadata, spec: read.value.spec };
    }
    case undefined:
      return undefined;
  }
}

/** Name and spec of a `NodeInstall`: metadata.name is the host name; a UUID there is the id, as in the forerunner. */
function nameInstall({ metadata, spec }: z.output<typeof NodeInstallSchema>) {
  const isId = NodeId.safeParse(metadata.name).success;
  const nodeId = spec.nodeId ?? (isId ? metadata.name : undefined);
  const hostname = spec.hostname ?? (isId ? undefined : metadata.name);
  return {
    name: hostname ?? nodeId ?? spec.node,
    spec: { ...spec, ...(nodeId !== undefined && { nodeId }), ...(hostname !== undefined && { hostname }) },
  };
}

function readKind(document: SourceNode, problems: Problems): Kind | undefined {
  const written = document.kind === "map" ? document.get("kind") : undefined;
  if (document.kind !== "map" || written === undefined) {
    problems.add({
      code: "YAML_KEY_MISSING",
      message: "a manifest needs its “kind”",
      at: document.kind === "map" ? ([...document.entries.values()][0]?.keyAt ?? document.at) : document.at,
      hint: `kind: ${manifestKinds.join(" or ")}`,
    });
    return undefined;
  }
  const text = written.kind === "scalar" ? String(written.value) : "";
  const found = manifestKinds.find((kind) => plainWord(kind) === plainWord(text));
  if (found === undefined)
    problems.add({
      code: "MANIFEST_KIND_UNKNOWN",
      message: `no kind “${text}” is known`,
      at: written.at,
      hint: suggestHint(text, manifestKinds, `known kinds: ${manifestKinds.join(", ")}`) ?? "",
    });
  return found;
}

function readShape<Schema extends z.ZodType>(
  document: SourceNode,
  schema: Schema,
  problems: Problems,
  findProblems: typeof problemsOf = problemsOf,
) {
  const node = withCamelKeys(document, schema, problems);
  const value = plainOf(node);
  const result = schema.safeParse(value);
  if (result.success) return { value: result.data, node };
  problems.add(...findProblems(value, node, schema));
  return undefined;
}

/** Adds a problem for a second manifest of the same kind and name in a file: it would replace the first one unseen. */
function refuseTwice(manifests: readonly (Manifest | undefined)[], problems: Problems): void {
  const seen = new Map<string, SourcePosition>();
  for (const manifest of manifests) {
    if (!manifest) continue;
    const key = `${manifest.kind} “${manifest.name}”`;
    const earlier = seen.get(key);
    if (earlier)
      problems.add({
        code: "MANIFEST_TWICE",
        message: `${key} is here twice, first at line ${earlier.line}`,
        at: manifest.at,
      });
    else seen.set(key, manifest.at);
  }
}
