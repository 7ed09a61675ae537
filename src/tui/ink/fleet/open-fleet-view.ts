import { createElement as h } from "react";
import type { Timers } from "../frame-pace.ts";
import type { KeyPress } from "../keys.ts";
import { Lines } from "../lines.ts";
import { openScreen, type Screen, type Size } from "../screen.ts";
import type { Theme } from "../theme.ts";
import { pressFleetKey, type FleetDeed } from "./fleet-keys.ts";
import { arrangeFleet, type FleetScene } from "./fleet-scene.ts";
import { freshFleetUi, type FleetUi } from "./fleet-ui.ts";
import type { FleetLink, FleetSnapshot } from "./snapshot.ts";

export interface FleetViewOptions {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly theme: Theme;
  /** What is shown first. */
  readonly snapshot: FleetSnapshot;
  /** The user leaves, or the terminal is gone. Called once; the terminal is still the view's until `close`. */
  readonly leave: () => void;
  /** A node's page was opened: what more is known of it may come with the next snapshots. Nobody's: closed. */
  readonly openNode?: (id: string | undefined) => void;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** The clock that frames are paced by, for tests. */
  readonly timers?: Timers;
}

/** The dashboard over the whole terminal. */
export interface FleetView {
  /** Shows what is so now; it is on the screen within 100 ms. */
  show(snapshot: FleetSnapshot): void;
  /** Shows how the connection stands. */
  tell(link: FleetLink): void;
  /** Gives the terminal back as it was. May be called twice. */
  close(): Promise<void>;
}

/** Takes the terminal as `openScreen` does and shows the cluster until `close`. It reaches nothing by itself. */
export function openFleetView(options: FleetViewOptions): FleetView {
  const view = new InkFleetView(options);
  view.open();
  return view;
}

class InkFleetView implements FleetView {
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
  }

  open(): void {
    const { stdin, stdout, theme, timers } = this.#options;
    this.#screen = openScreen({
      stdin,
      stdout,
      ticks: true,
      ...(timers ? { timers } : {}),
      onKey: (press) => this.#press(press),
      onSignal: () => this.#leave(),
      draw: (size) => {
        this.#scene = this.#arrange(size);
        this.#ui = this.#scene.ui;
        return h(Lines, { lines: this.#scene.lines, width: size.columns, theme });
      },
    });
  }

  show(snapshot: FleetSnapshot): void {
    this.#snapshot = snapshot;
    this.#screen?.news();
  }

  tell(link: FleetLink): void {
    this.#link = link;
    this.#screen?.news();
  }

  async close(): Promise<void> {
    await this.#screen?.close();
  }

  #arrange(size: Size): FleetScene {
    const { theme, now = Date.now } = this.#options;
    return arrangeFleet({ snapshot: this.#snapshot, link: this.#link, ui: this.#ui, size, theme, now: now() });
  }

  #press(press: KeyPress): void {
    // Of several keys between two frames each finds what the one before it made; news wait for the next frame.
    if (this.#scene.ui !== this.#ui) this.#scene = this.#arrange(this.#screen?.size ?? { columns: 80, rows: 24 });
    const { ui, does } = pressFleetKey(this.#scene, press);
    this.#ui = ui;
    if (does) this.#do(does);
    this.#tellOpened();
    this.#screen?.key();
  }

  #tellOpened(): void {
    const { section, isOpen, places } = this.#ui;
    const id = isOpen && section === "nodes" ? places.nodes.key : undefined;
    if (id === this.#openedNode) return;
    this.#openedNode = id;
    this.#options.openNode?.(id);
  }

  #do(deed: FleetDeed): void {
    switch (deed.type) {
      case "leave":
        return this.#leave();
      case "suspend":
        return this.#screen?.suspend();
      case "redraw":
        return this.#screen?.redraw();
      case "copy": {
        const { now = Date.now } = this.#options;
        this.#screen?.copy(deed.text);
        this.#ui = { ...this.#ui, toast: { text: `copied: ${deed.text}`, role: "ok", until: now() + 4000 } };
      }
    }
  }

  #leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#options.leave();
  }
}
