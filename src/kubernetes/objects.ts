/** What every object of the API has; the rest is as its kind has it. */
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
