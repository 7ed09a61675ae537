import { z } from "zod";

/** The fields of every object of the API; the rest depends on its kind. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly [field: string]: unknown;
}

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly generation?: number;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly deletionTimestamp?: string;
  readonly ownerReferences?: readonly { readonly kind: string; readonly name: string; readonly controller?: boolean }[];
  readonly managedFields?: readonly ManagedFields[];
  readonly [field: string]: unknown;
}

export interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly time?: string;
  readonly fieldsV1?: unknown;
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  readonly timeAdded?: string;
}

export interface KubeNode extends KubeObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly nodeInfo?: { readonly kubeletVersion?: string };
  };
}

export interface Pod extends KubeObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly volumes?: readonly { readonly name: string; readonly emptyDir?: unknown }[];
  };
  readonly status?: { readonly phase?: string };
}

/** `Deployment web/nginx`. */
export function titleOf({ kind, metadata: { name, namespace } }: Pick<KubeObject, "kind" | "metadata">): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

const Texts = z.record(z.string(), z.string()).optional();
const Text = z.string().optional();
/** Of names, keys and short values the API takes 253 characters at most, and a slash between two of them. */
const Name = z.string().max(512);

/** The checked fields of an object: a server in wrong hands may send anything. */
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
  spec: z.looseObject({ volumes: z.array(z.looseObject({ name: z.string() })).optional() }).optional(),
  status: z.looseObject({ phase: Text }).optional(),
});

/** The schema of one page of a list; a page with more than `most` objects is refused before any object is parsed. */
export function pageOf(item: z.ZodType, most: number): z.ZodType {
  const few = z.looseObject({ items: z.array(z.unknown()).max(most).nullish() });
  return few.pipe(
    z.looseObject({
      items: z.array(item).nullish(),
      metadata: z.looseObject({ continue: Text }).optional(),
    }),
  );
}

/** One of the resources that a version of a group has. */
export interface Resource {
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
