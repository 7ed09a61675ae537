import { z } from "zod";
import { isEncrypted } from "#engine/step/encrypted-value.ts";
import { Secret, secret } from "#engine/step/secret.ts";
import { plainOf, type SourceNode } from "#engine/yaml/node.ts";
import { parseDocuments } from "#engine/yaml/parse.ts";
import { validate } from "#engine/yaml/validate.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { KubeObject } from "./objects.ts";
import { PathPart } from "./target.ts";

/** The fields of every manifest; the API checks the rest. */
export const ObjectManifest = z
  .looseObject({
    apiVersion: z
      .string()
      .regex(/^([a-z0-9][a-z0-9.-]*\/)?[a-z0-9]+$/, "must be GROUP/VERSION, or v1")
      .describe("Group and version: v1, apps/v1."),
    kind: z.string().min(1).describe("The kind of the object: ConfigMap, Deployment."),
    metadata: z
      .looseObject({
        name: PathPart.describe("The object's name."),
        namespace: PathPart.optional().describe("The object's namespace; the stage's unless given."),
      })
      .describe("Name, namespace, labels, annotations."),
  })
  .superRefine((object, context) => {
    if (!isSecretObject(object)) return;
    for (const field of ["data", "stringData"] as const)
      for (const [key, value] of Object.entries(object[field] ?? {}))
        if (typeof value !== "string" && !(value instanceof Secret))
          context.addIssue({
            code: "custom",
            path: [field, key],
            message: "must be a text, in quotes: it is a Secret's",
            params: { conceal: true },
          });
  })
  .describe("An object as the API takes it.");

/** An object as the operator wants it, and the paths of its secrets. */
export interface WantedObject {
  readonly object: KubeObject;
  /** Paths whose values were given as secrets, each as a JSON list. */
  readonly secrets: ReadonlySet<string>;
}

const List = z.looseObject({ kind: z.literal("List"), items: z.array(z.unknown()) });

/** The objects of a text with one or more YAML documents; a `kind: List` gives its items. @throws KcoreError with every problem, at its place */
export function readObjects(
  name: string,
  text: string | Uint8Array,
  { conceal = false } = {},
): readonly WantedObject[] {
  const problems: Problem[] = [];
  const wanted = attempt(problems, () => parseDocuments(name, text))?.flatMap((node) =>
    itemsOf(node).flatMap((item) => {
      problems.push(...sealedProblems(item));
      return attempt(problems, () => wantedObject(validate(item, ObjectManifest))) ?? [];
    }),
  );
  if (problems.length > 0) throw new KcoreError(problems.map((each) => (conceal ? { ...each, conceal: true } : each)));
  return wanted ?? [];
}

function attempt<T>(problems: Problem[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

function itemsOf(node: SourceNode): readonly SourceNode[] {
  const items = node.kind === "map" && List.safeParse(plainOf(node)).success ? node.get("items") : undefined;
  return items?.kind === "list" ? items.items : [node];
}

/** The problems of sealed values in a file of manifests, which would be written into the cluster as they are. */
function sealedProblems(node: SourceNode): readonly Problem[] {
  if (node.kind === "list") return node.items.flatMap(sealedProblems);
  if (node.kind === "map") return [...node.entries.values()].flatMap(({ value }) => sealedProblems(value));
  if (!isEncrypted(node.value)) return [];
  const message = "a sealed value is not opened in a file of manifests";
  const hint = "write it into the stage itself, as its manifest, or give it to a template by vars";
  return [{ code: "SECRET_MISPLACED", message, at: node.at, hint }];
}

/** The object of a manifest, with secrets revealed and `stringData` moved into `data`. */
export function wantedObject(manifest: unknown): WantedObject {
  const secrets = new Set<string>();
  const object = reveal(manifest, [], secrets) as KubeObject;
  return { object: isSecretObject(object) ? moveStringData(object) : object, secrets };
}

function reveal(value: unknown, path: readonly string[], secrets: Set<string>): unknown {
  if (value instanceof Secret) {
    secrets.add(JSON.stringify(path));
    return value.reveal();
  }
  if (Array.isArray(value)) return value.map((item, index) => reveal(item, [...path, String(index)], secrets));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, reveal(inner, [...path, key], secrets)]));
}

export function isSecretObject({ apiVersion, kind }: Pick<KubeObject, "apiVersion" | "kind">): boolean {
  return apiVersion === "v1" && kind === "Secret";
}

/**
 * Moves `stringData` into `data`, as the server would: the server drops `stringData`, so that no manager would own the field.
 * From here on the record masks the values.
 */
function moveStringData({ stringData, ...object }: KubeObject): KubeObject {
  const given = (object["data"] ?? {}) as Record<string, string>;
  const texts = (stringData ?? {}) as Record<string, string>;
  for (const value of Object.values(given)) {
    secret(value);
    secret(Buffer.from(value, "base64").toString("utf8"));
  }
  const added = Object.entries(texts).map(([key, text]) => {
    const encoded = Buffer.from(secret(text).reveal(), "utf8").toString("base64");
    return [key, secret(encoded).reveal()] as const;
  });
  if (Object.keys(given).length === 0 && added.length === 0) return object as KubeObject;
  return { ...object, data: { ...given, ...Object.fromEntries(added) } } as KubeObject;
}
