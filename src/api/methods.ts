import type { z } from "zod";
import type { Role } from "#pki/identity.ts";
import { ControllerHealth, Heartbeat, NodeList, NodeView, Nothing, Registration, Standing } from "./schemas.ts";

/** One thing a controller can be asked. */
export interface Method<Body extends z.ZodType = z.ZodType, Reply extends z.ZodType = z.ZodType> {
  readonly verb: "GET" | "POST";
  /** `{id}` stands for one path segment. */
  readonly path: string;
  /** Who may ask; nobody else, and nobody without a certificate (S-16). */
  readonly roles: readonly Role[];
  /** A node may ask this only about itself: the `{id}`, or the body's nodeId, must be its certificate's (S-12). */
  readonly ownNodeOnly?: true;
  readonly body: Body;
  readonly reply: Reply;
}

function method<Body extends z.ZodType, Reply extends z.ZodType>(given: Method<Body, Reply>): Method<Body, Reply> {
  return given;
}

const everyone = ["controller", "node", "operator"] as const;

/** The whole API of a controller. What is not listed here does not exist. */
export const methods = {
  health: method({ verb: "GET", path: "/healthz", roles: everyone, body: Nothing, reply: Nothing }),
  ready: method({ verb: "GET", path: "/readyz", roles: everyone, body: Nothing, reply: ControllerHealth }),
  registerNode: method({
    verb: "POST",
    path: "/v1/nodes/register",
    roles: ["node"],
    ownNodeOnly: true,
    body: Registration,
    reply: Standing,
  }),
  heartbeat: method({
    verb: "POST",
    path: "/v1/nodes/heartbeat",
    roles: ["node"],
    ownNodeOnly: true,
    body: Heartbeat,
    reply: Standing,
  }),
  /** An agent that stops says so: its node is not ready from now on. */
  goodbye: method({
    verb: "POST",
    path: "/v1/nodes/goodbye",
    roles: ["node"],
    ownNodeOnly: true,
    body: Heartbeat,
    reply: Standing,
  }),
  listNodes: method({
    verb: "GET",
    path: "/v1/nodes",
    roles: ["controller", "operator"],
    body: Nothing,
    reply: NodeList,
  }),
  getNode: method({
    verb: "GET",
    path: "/v1/nodes/{id}",
    roles: everyone,
    ownNodeOnly: true,
    body: Nothing,
    reply: NodeView,
  }),
  approveNode: method({
    verb: "POST",
    path: "/v1/nodes/{id}/approve",
    roles: ["operator"],
    body: Nothing,
    reply: NodeView,
  }),
  rejectNode: method({
    verb: "POST",
    path: "/v1/nodes/{id}/reject",
    roles: ["operator"],
    body: Nothing,
    reply: NodeView,
  }),
} as const;

export type Methods = typeof methods;
export type MethodName = keyof Methods;
export type BodyOf<Name extends MethodName> = z.input<Methods[Name]["body"]>;
export type AcceptedBodyOf<Name extends MethodName> = z.output<Methods[Name]["body"]>;
export type ReplyOf<Name extends MethodName> = z.output<Methods[Name]["reply"]>;

/** The method that a request means, with what stands for `{id}`. */
export function findMethod(
  verb: string,
  path: string,
): { readonly name: MethodName; readonly id?: string } | { readonly wrongVerb: boolean } {
  let wrongVerb = false;
  const segments = path.split("/");
  // Literal paths first: no node can be called “register”.
  const candidates = (Object.keys(methods) as MethodName[]).toSorted(
    (a, b) => Number(methods[a].path.includes("{")) - Number(methods[b].path.includes("{")),
  );
  for (const name of candidates) {
    const pattern = methods[name].path.split("/");
    if (pattern.length !== segments.length) continue;
    if (!pattern.every((part, index) => part === "{id}" || part === segments[index])) continue;
    if (methods[name].verb !== verb) {
      wrongVerb = true;
      continue;
    }
    const id = segments[pattern.indexOf("{id}")];
    return { name, ...(id === undefined ? {} : { id }) };
  }
  return { wrongVerb };
}
