import { z } from "zod";

const Texts = z.record(z.string(), z.string()).optional();
const Text = z.string().optional();
/** A name, key or short value. The API allows 253 characters, or two such parts with a slash between. */
const Name = z.string().max(512);

/** The checked fields of an object: a compromised server may send anything. */
export const ObjectShape = z.looseObject({
  metadata: z.looseObject({
    name: Name,
    namespace: Name.optional(),
    uid: Text,
    generation: z.number().optional(),
    resourceVersion: Text,
    labels: Texts,
    annotations: Texts,
    finalizers: z.array(z.string()).optional(),
    deletionTimestamp: Name.optional(),
    ownerReferences: z.array(z.looseObject({ kind: Name, name: Name, controller: z.boolean().optional() })).optional(),
    managedFields: z.array(z.looseObject({ manager: Text, operation: Text })).optional(),
  }),
});

export const NodeShape = ObjectShape.extend({
  spec: z
    .looseObject({
      unschedulable: z.boolean().optional(),
      taints: z.array(z.looseObject({ key: Name, value: Text, effect: Name })).optional(),
    })
    .optional(),
  status: z
    .looseObject({
      conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).optional(),
      nodeInfo: z.looseObject({ kubeletVersion: Name.optional() }).optional(),
    })
    .optional(),
});

export const PodShape = ObjectShape.extend({
  spec: z
    .looseObject({ volumes: z.array(z.looseObject({ name: z.string(), emptyDir: z.unknown() })).optional() })
    .optional(),
  status: z.looseObject({ phase: Text }).optional(),
});

/** An object of the API; the rest of its fields depends on its kind. */
export type KubeObject = OfKind & z.output<typeof ObjectShape>;
export type KubeNode = OfKind & z.output<typeof NodeShape>;
export type Pod = OfKind & z.output<typeof PodShape>;

interface OfKind {
  readonly apiVersion: string;
  readonly kind: string;
}

export type KubeTaint = NonNullable<NonNullable<KubeNode["spec"]>["taints"]>[number];

export interface ObjectCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

/** An object's kind and name: `Deployment web/nginx`. */
export function objectTitle({ kind, metadata: { name, namespace } }: Pick<KubeObject, "kind" | "metadata">): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** The schema of one page of a list; a page with more than `most` objects is refused before any object is parsed. */
export function pageShape(item: z.ZodType, most: number): z.ZodType {
  const few = z.looseObject({ items: z.array(z.unknown()).max(most).nullish() });
  return few.pipe(
    z.looseObject({
      items: z.array(item).nullish(),
      metadata: z.looseObject({ continue: Text }).optional(),
    }),
  );
}

/** A resource of a group version, as the API lists it. */
export interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly group?: string;
  readonly version?: string;
}

export const ResourcesShape = z.looseObject({
  resources: z.array(
    z.looseObject({ name: z.string(), kind: z.string(), namespaced: z.boolean(), group: Text, version: Text }),
  ),
});
