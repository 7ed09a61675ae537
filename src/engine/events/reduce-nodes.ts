import { omitUndefined } from "#base/omit-undefined.ts";
import type { RunEvent } from "./event.ts";
import type { NodeModel } from "./run-model.ts";

type NodeEvent = Extract<RunEvent, { type: `node.${string}` }>;

export function newNode(name: string): NodeModel {
  return { name, state: "pending", exchanges: 0, steps: [] };
}

/** The node after an event of its work: such an event ends a wait, as for a content from other nodes. */
export function goingOn(node: NodeModel): NodeModel {
  if (node.state !== "waiting") return node;
  const { reason: _, ...rest } = node;
  return { ...rest, state: "connected" };
}

/** The node after an event of its connection, contents or end. */
export function changeNodeState(node: NodeModel, event: NodeEvent): NodeModel {
  // A content that was on its way when the connection or the node's run ended is sent again or never.
  const { reason: _, sending: _sending, ...rest } = node;
  switch (event.type) {
    case "node.connecting":
      return { ...rest, state: "connecting", startedAt: node.startedAt ?? event.at };
    case "node.connected":
      return { ...rest, state: "connected", fingerprint: event.fingerprint };
    case "node.disconnected":
      return { ...rest, state: "disconnected", reason: event.reason };
    case "node.waiting":
      return { ...rest, state: "waiting", reason: event.reason };
    case "node.rebooted":
      return { ...rest, state: "rebooting" };
    case "node.segment":
      return {
        ...rest,
        state: "connected",
        exchanges: event.exchange,
        // Steps without an outcome are sent again with this segment, so only ended steps are added.
        planned: node.steps.filter(({ outcome }) => outcome !== undefined).length + event.steps,
      };
    case "node.saved": {
      const { device, save, before } = event;
      return { ...node, saved: [...(node.saved ?? []), { device, save, before }] };
    }
    case "node.unsaved": {
      const saved = node.saved?.filter(({ save }) => save !== event.save) ?? [];
      const { saved: _, ...rest } = node;
      return saved.length > 0 ? { ...rest, saved } : rest;
    }
    case "node.sending": {
      const { name, sent, total, rate, from } = event;
      const { name: before, since } = node.sending ?? {};
      const begun = since !== undefined && before === name ? since : event.at;
      // A step that waits for the content is not silent: each report of progress counts as heard.
      const steps = node.steps.map((step) => (step.outcome === undefined ? { ...step, heardAt: event.at } : step));
      return {
        ...goingOn(node),
        steps,
        sending: { name, sent, total, since: begun, ...omitUndefined({ rate, from }) },
      };
    }
    case "node.sent": {
      const { sending: __, ...arrived } = goingOn(node);
      const { name, bytes, duration, from } = event;
      return { ...arrived, sent: [...(node.sent ?? []), { name, bytes, duration, ...omitUndefined({ from }) }] };
    }
    case "node.milestone":
      return { ...node, milestone: event.milestone };
    case "node.facts":
      return { ...node, facts: event.facts };
    case "node.finished":
      return {
        ...rest,
        state: "finished",
        outcome: event.outcome,
        endedAt: event.at,
        ...omitUndefined({ problem: event.problem }),
      };
  }
}
