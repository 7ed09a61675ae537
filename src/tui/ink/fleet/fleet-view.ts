import type { Timers } from "#base/timers.ts";
import type { KeyPress } from "../keys.ts";
import { Screen, type TerminalSize } from "../screen.ts";
import type { Theme } from "../theme.ts";
import { pressFleetKey, type FleetEffect } from "./fleet-keys.ts";
import { arrangeFleet, type FleetScene } from "./fleet-scene.ts";
import { freshFleetUi, type FleetUi } from "./fleet-ui.ts";
import type { FleetLink, FleetSnapshot } from "./snapshot.ts";

export interface FleetViewOptions {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly theme: Theme;
  /** The first snapshot. */
  readonly snapshot: FleetSnapshot;
  /** Called once when the operator leaves, a signal comes, or the terminal is gone; the view keeps the terminal until `close`. */
  readonly leave: () => void;
  /**
   * Called with the id of the node whose page the operator opened, so that the next snapshots may have its details; undefined:
   * the page was closed.
   */
  readonly openNode?: (id: string | undefined) => void;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** The clock that paces frames, for tests. */
  readonly timers?: Timers;
}

/** The dashboard of a cluster, over the whole terminal until `close`. */
export class FleetView {
  readonly #options: FleetViewOptions;
  #screen: Screen | undefined;
  #snapshot: FleetSnapshot;
  #link: FleetLink;
  #ui: FleetUi = freshFleetUi;
  #scene: FleetScene;
  #hasLeft = false;
  #openedNode: string | undefined;

  constructor(options: FleetViewOptions) {
    this.#options = options;
    this.#snapshot = options.snapshot;
    this.#link = { state: "live", endpoint: options.snapshot.asked };
    this.#scene = this.#arrange({ columns: 80, rows: 24 });
    this.#open();
  }

  #open(): void {
    const { stdin, stdout, theme, timers } = this.#options;
    this.#screen = new Screen({
      stdin,
      stdout,
      theme,
      ...(timers ? { timers } : {}),
      onKey: (press) => this.#press(press),
      onSignal: () => this.#leave(),
      draw: (size) => {
        this.#scene = this.#arrange(size);
        this.#ui = this.#scene.ui;
        return this.#scene.lines;
      },
    });
  }

  /** Shows the state of the cluster; it is on the screen within 100 ms, on a slow machine within a second. */
  show(snapshot: FleetSnapshot): void {
    this.#snapshot = snapshot;
    this.#screen?.news();
  }

  showLink(link: FleetLink): void {
    this.#link = link;
    this.#screen?.news();
  }

  /** Gives the terminal back as it was. May be called twice. */
  async close(): Promise<void> {
    await this.#screen?.close();
  }

  #arrange(size: TerminalSize): FleetScene {
    const { theme, now = Date.now } = this.#options;
    return arrangeFleet({ snapshot: this.#snapshot, link: this.#link, ui: this.#ui, size, theme, now: now() });
  }

  #press(press: KeyPress): void {
    // A key applies to the frame in sight; a second key in the same frame applies to the first key's result.
    if (this.#scene.ui !== this.#ui) this.#scene = this.#arrange(this.#screen?.size ?? { columns: 80, rows: 24 });
    const { ui, effect } = pressFleetKey(this.#scene, press);
    this.#ui = ui;
    if (effect) this.#do(effect);
    this.#reportOpenNode();
    this.#screen?.key();
  }

  #reportOpenNode(): void {
    const { section, isOpen, states } = this.#ui;
    const id = isOpen && section === "nodes" ? states.nodes.key : undefined;
    if (id === this.#openedNode) return;
    this.#openedNode = id;
    this.#options.openNode?.(id);
  }

  #do(effect: FleetEffect): void {
    switch (effect.type) {
      case "leave":
        return this.#leave();
      case "copy": {
        const { now = Date.now } = this.#options;
        this.#ui = { ...this.#ui, toast: { text: `copied: ${effect.text}`, role: "ok", until: now() + 4000 } };
        return this.#screen?.do(effect);
      }
      case "suspend":
      case "redraw":
        return this.#screen?.do(effect);
    }
  }

  #leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#options.leave();
  }
}
