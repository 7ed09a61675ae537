import { z } from "zod";

/** One part of a path: `.` and `..` would lead to another path, such as all objects of a list. */
export const PathPart = z.string().regex(/^(?!\.{1,2}$)[^/%]+$/, "must not be . or .., nor have / or % in it");

/** The field manager of kcore's writes (`managedFields`). */
export const fieldManager = "kcore";

/** The parts of an API path: a resource, an object of it, or an object's subresource. */
export interface ApiTarget {
  /** `v1`, `apps/v1`. */
  readonly apiVersion: string;
  /** Plural: `nodes`. */
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string;
}

/** One request to the API, apart from its path. */
export interface ApiCall {
  /** In RBAC's words. */
  readonly verb: "get" | "list" | "create" | "patch" | "delete";
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly contentType?: string;
  /** The shape that the answer must have; absent: any. */
  readonly shape?: z.ZodType;
}

/** The target's path on a server. */
export function apiPath({ apiVersion, resource, namespace, name, subresource }: ApiTarget): string {
  const parts = [
    ...(namespace === undefined ? [] : ["namespaces", namespace]),
    resource,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : [subresource]),
  ];
  return `${apiRoot(apiVersion)}/${parts.map(encodeURIComponent).join("/")}`;
}

/** The path of a group version's resources. */
export function apiRoot(apiVersion: string): string {
  return apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

/** A target in words: `deployments.apps web/nginx`, `nodes n1`, `pods/eviction web/a`. */
export function describeTarget({ apiVersion, resource, namespace, name, subresource }: ApiTarget): string {
  const [group] = apiVersion.includes("/") ? apiVersion.split("/") : [];
  const kind = `${resource}${group === undefined ? "" : `.${group}`}${subresource === undefined ? "" : `/${subresource}`}`;
  const place = [namespace, name].filter((part) => part !== undefined).join("/");
  return place === "" ? kind : `${kind} ${place}`;
}
