"use strict";
(() => {
	const all = (selector, within = document) => [...within.querySelectorAll(selector)];

	// ---- tables: sort by a click on a heading, filter by words ----

	const collator = new Intl.Collator("en", { numeric: true });

	// forest returns the rows of a table as a tree, from the depths in their classes.
	function forest(rows) {
		const roots = [], open = [];
		for (const row of rows) {
			const depth = Number(/\bd(\d)/.exec(row.className)[1]);
			const node = { row, inside: [], text: row.textContent.toLowerCase() };
			open.length = Math.min(open.length, depth);
			(open.length ? open[open.length - 1].inside : roots).push(node);
			open.push(node);
		}
		return roots;
	}

	// order returns what a cell is sorted by: a number, NaN for an unknown number, or a text.
	function order(row, column, number) {
		const cell = row.cells[column];
		if (!number) return cell.textContent;
		return cell.dataset.v === undefined ? parseFloat(cell.textContent) : Number(cell.dataset.v);
	}

	function compare(a, b, number, sign) {
		if (!number) return sign * collator.compare(a, b);
		if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
		return sign * (a - b);
	}

	// matches returns a test of a text: all words must be in it, and no word after a "!".
	function matches(filter) {
		const words = filter.toLowerCase().split(/\s+/).filter((w) => w && w !== "!");
		return (text) => words.every((w) => (w[0] === "!" ? !text.includes(w.slice(1)) : text.includes(w)));
	}

	function setUpTable(box) {
		const body = box.querySelector("tbody");
		const tree = forest([...body.rows]);
		const heads = all("th", box);
		const filter = box.querySelector(".filter");
		const input = filter.querySelector("input");
		const count = filter.querySelector("output");
		let column = -1, sign = 1;

		function sorted(nodes) {
			if (column < 0) return nodes;
			const number = heads[column].classList.contains("n");
			const keyed = nodes.map((node) => ({ node, key: order(node.row, column, number) }));
			keyed.sort((a, b) => compare(a.key, b.key, number, sign));
			return keyed.map((k) => k.node);
		}

		function place(nodes, list) {
			for (const node of sorted(nodes)) {
				list.push(node.row);
				place(node.inside, list);
			}
		}

		function sort() {
			const list = [];
			place(tree, list);
			body.append(...list);
			heads.forEach((h, i) => {
				if (i === column) h.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
				else h.removeAttribute("aria-sort");
			});
		}

		// show hides the rows that do not match. The rows above and inside a matching row are shown too.
		function show(nodes, match, within) {
			let any = 0;
			for (const node of nodes) {
				const hit = match(node.text);
				const inside = show(node.inside, match, within || hit);
				const shown = within || hit || inside > 0;
				node.row.hidden = !shown;
				any += inside + (shown ? 1 : 0);
			}
			return any;
		}

		heads.forEach((head, i) => {
			const button = document.createElement("button");
			button.type = "button";
			button.append(...head.childNodes);
			button.title = head.title;
			head.replaceChildren(button);
			button.addEventListener("click", () => {
				const first = head.classList.contains("n") ? -1 : 1; // the largest number first
				if (column !== i) [column, sign] = [i, first];
				else if (sign === first) sign = -first;
				else column = -1; // the third click restores the order
				sort();
			});
		});
		filter.hidden = false;
		input.addEventListener("input", () => {
			const n = show(tree, matches(input.value), false);
			count.textContent = input.value.trim() ? `${n} of ${body.rows.length} rows` : "";
		});
	}
	all(".table").forEach(setUpTable);

	// ---- timeline ----

	// reader reads varints from base64.
	function reader(text) {
		const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
		let at = 0;
		const unsigned = () => {
			let value = 0, factor = 1, byte;
			do {
				byte = bytes[at++];
				value += (byte & 127) * factor;
				factor *= 128;
			} while (byte > 127);
			return value;
		};
		const signed = () => {
			const v = unsigned();
			return v % 2 ? -(v + 1) / 2 : v / 2;
		};
		return { unsigned, signed, more: () => at < bytes.length };
	}

	// decode returns the steps with their slices. A slice has from, to, ns, name, lane and count.
	function decode(data) {
		const patterns = data.patterns.map((text) => {
			const r = reader(text), list = [];
			while (r.more()) list.push(r.unsigned());
			return list;
		});
		const r = reader(data.steps), host = reader(data.host), gpu = reader(data.gpu);
		const steps = [];
		let begin = 0, hostEnd = 0, gpuEnd = 0;
		for (let i = 0; i < data.count; i++) {
			const step = { index: r.unsigned(), phase: r.unsigned(), position: r.unsigned() };
			step.from = begin += r.signed();
			step.to = step.from + r.unsigned();
			step.host = [];
			for (let n = host.unsigned(); n > 0; n--) {
				const from = hostEnd + host.signed(), to = from + host.unsigned();
				const ns = to - from + host.unsigned(), name = host.unsigned();
				const whole = step.host.length === 0 && name === step.phase;
				hostEnd = whole ? from : to;
				step.host.push({ from, to, ns, name, lane: 0, count: 1, whole });
			}
			step.gpu = [];
			const n = gpu.unsigned(), pattern = gpu.unsigned();
			for (let k = 0; k < n; k++) {
				const from = gpuEnd + gpu.signed(), to = from + gpu.unsigned(), word = gpu.unsigned();
				const zigzag = Math.floor(word / data.max), lane = word % data.max;
				const ns = to - from + (zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2);
				const name = pattern ? patterns[pattern - 1][k] : gpu.unsigned();
				const count = pattern ? 1 : gpu.unsigned();
				step.gpu.push({ from, to, ns, name, lane, count });
				gpuEnd = to;
			}
			steps.push(step);
		}
		return steps;
	}

	// time formats a time with four digits at most.
	function time(ns) {
		const digits = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2));
		if (Math.abs(ns) < 1e3) return `${Math.round(ns)} ns`;
		if (ns < 1e6) return `${digits(ns / 1e3)} µs`;
		if (ns < 1e9) return `${digits(ns / 1e6)} ms`;
		return `${digits(ns / 1e9)} s`;
	}

	// timer returns a function that formats instants so that two that are `stride` ns apart look different.
	function timer(stride, most) {
		const [factor, unit] = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]].findLast(([f]) => f <= Math.max(1, most));
		const decimals = Math.min(9, Math.max(0, Math.ceil(Math.log10(factor / stride) - 1e-9)));
		return (ns) => `${(ns / factor).toFixed(decimals)} ${unit}`;
	}

	function setUpTimeline(box, data) {
		const steps = decode(data);
		const view = box.querySelector(".view"), overview = box.querySelector(".overview");
		const range = box.querySelector(".range"), pointed = box.querySelector(".pointed");
		const hint = pointed.textContent;
		const axisHeight = 18, rowHeight = 22, gap = 6, margin = 44;
		const height = axisHeight + (rowHeight + gap) * (1 + data.lanes);
		let from = 0, to = data.end, current = -1, colors = {}, queued = false;

		function readColors() {
			const style = getComputedStyle(document.documentElement);
			for (const name of ["back", "panel", "text", "quiet", "rule", "accent", "on", "tone1", "tone2", "tone3"]) {
				colors[name] = style.getPropertyValue(`--${name}`).trim();
			}
			colors.tone0 = colors.accent;
		}

		// surface prepares a canvas for drawing and returns its context and its width.
		function surface(canvas, high) {
			const scale = window.devicePixelRatio || 1;
			const wide = Math.max(50, canvas.clientWidth);
			canvas.width = Math.round(wide * scale);
			canvas.height = Math.round(high * scale);
			canvas.style.height = `${high}px`;
			const c = canvas.getContext("2d");
			c.setTransform(scale, 0, 0, scale, 0, 0);
			c.font = `11px ${getComputedStyle(document.body).fontFamily}`;
			c.textBaseline = "middle";
			c.clearRect(0, 0, wide, high);
			return [c, wide];
		}

		const name = (slice) => data.names[slice.name].split("\n");
		const short = (slice) => name(slice)[0].replace(/^layers\.\d+\./, "");
		const label = (step) => `s${step.index} ${data.names[step.phase]}`;

		// firstStep returns the index of the first step that ends at or after a time.
		function firstStep(at) {
			let low = 0, high = steps.length;
			while (low < high) {
				const mid = (low + high) >> 1;
				if (steps[mid].from < at) low = mid + 1;
				else high = mid;
			}
			while (low > 0 && steps[low - 1].to >= at) low--;
			return low > 0 && low >= steps.length ? low - 1 : low;
		}

		// rows calls f for each visible slice with its row: 0 for the host, then a row for each lane of the GPU.
		function visible(f) {
			for (let i = firstStep(from); i < steps.length && steps[i].from <= to; i++) {
				const step = steps[i];
				for (const slice of step.host) if (slice.to >= from && slice.from <= to) f(slice, 0, step);
				for (const slice of step.gpu) if (slice.to >= from && slice.from <= to) f(slice, 1 + slice.lane, step);
			}
		}

		const rowTop = (row) => axisHeight + row * (rowHeight + gap);

		function drawAxis(c, wide) {
			const span = to - from, rough = (span / (wide - margin)) * 110;
			const power = 10 ** Math.floor(Math.log10(rough));
			const stride = power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10);
			const instant = timer(stride, to);
			c.fillStyle = colors.quiet;
			c.strokeStyle = colors.rule;
			c.beginPath();
			for (let k = Math.ceil(from / stride); k * stride <= to; k++) {
				const x = margin + ((k * stride - from) / span) * (wide - margin);
				c.moveTo(x, axisHeight - 4);
				c.lineTo(x, height);
				if (x < wide - 40) c.fillText(instant(k * stride), x + 3, axisHeight / 2);
			}
			c.stroke();
			c.fillText("host", 4, rowTop(0) + rowHeight / 2);
			c.fillText("GPU", 4, rowTop(1) + rowHeight / 2);
		}

		// text writes a text in a box if there is room for some letters of it.
		function text(c, s, x, y, w) {
			if (w < 34) return;
			c.save();
			c.beginPath();
			c.rect(x, y, w - 3, rowHeight);
			c.clip();
			c.fillText(s, Math.max(x, margin) + 4, y + rowHeight / 2 + 0.5);
			c.restore();
		}

		function draw() {
			queued = false;
			const [c, wide] = surface(view, height);
			const room = wide - margin, scale = room / (to - from);
			drawAxis(c, wide);
			// Slices narrower than a pixel are added up in pixels. The tone with the most time wins.
			const rows = 1 + data.lanes, narrow = new Float64Array(rows * 4 * (Math.ceil(room) + 1));
			const stride = Math.ceil(room) + 1;
			c.save();
			c.beginPath();
			c.rect(margin, 0, room, height);
			c.clip();
			visible((slice, row) => {
				const x = margin + (slice.from - from) * scale, w = (slice.to - slice.from) * scale;
				const tone = row === 0 ? (slice.whole ? 3 : 2) : data.tones[slice.name];
				if (w < 1) {
					const px = Math.min(stride - 1, Math.max(0, Math.floor(x - margin)));
					narrow[(row * 4 + tone) * stride + px] += Math.max(w, 0.02);
					return;
				}
				const top = rowTop(row) + (row === 0 && !slice.whole ? 10 : 0);
				const high = rowHeight - (row === 0 && !slice.whole ? 10 : 0);
				c.fillStyle = colors[`tone${tone}`];
				c.fillRect(x, top, Math.max(1, w - (w > 3 ? 0.7 : 0)), high);
			});
			for (let row = 0; row < rows; row++) {
				for (let px = 0; px < stride; px++) {
					let most = 0, tone = 0, sum = 0;
					for (let t = 0; t < 4; t++) {
						const v = narrow[(row * 4 + t) * stride + px];
						sum += v;
						if (v > most) [most, tone] = [v, t];
					}
					if (sum === 0) continue;
					c.globalAlpha = Math.min(1, 0.25 + 0.75 * sum);
					c.fillStyle = colors[`tone${tone}`];
					c.fillRect(margin + px, rowTop(row), 1, rowHeight);
				}
			}
			c.globalAlpha = 1;
			visible((slice, row, step) => {
				const x = margin + (slice.from - from) * scale, w = (slice.to - slice.from) * scale;
				if (w < 34) return;
				c.fillStyle = row > 0 && data.tones[slice.name] === 0 ? colors.on : colors.text;
				if (row > 0) text(c, short(slice), Math.max(x, margin), rowTop(row), Math.min(w, w + x - margin));
				else if (slice.whole) text(c, label(step), Math.max(x, margin), rowTop(0) - 6, Math.min(w, w + x - margin));
				else text(c, name(slice)[0], Math.max(x, margin), rowTop(0) + 5, Math.min(w, w + x - margin));
			});
			if (current >= 0) {
				const s = steps[current];
				c.strokeStyle = colors.accent;
				c.strokeRect(margin + (s.from - from) * scale, axisHeight - 2, Math.max(2, (s.to - s.from) * scale), height - axisHeight);
			}
			c.restore();
			drawOverview();
			view.dataset.from = String(Math.round(from));
			view.dataset.to = String(Math.round(to));
			const instant = timer((to - from) / 100, data.end);
			range.textContent = `${instant(from)} to ${instant(to)} of ${time(data.end)}`;
		}

		function drawOverview() {
			const [c, wide] = surface(overview, 34);
			const scale = (wide - margin) / data.end;
			c.fillStyle = colors.quiet;
			c.fillText("run", 4, 17);
			for (const s of steps) {
				c.fillStyle = data.names[s.phase] === "prefill" ? colors.tone1 : colors.tone2;
				c.fillRect(margin + s.from * scale, 7, Math.max(0.6, (s.to - s.from) * scale - 0.4), 20);
			}
			const x = margin + from * scale, w = Math.max(3, (to - from) * scale);
			c.strokeStyle = colors.accent;
			c.lineWidth = 2;
			c.strokeRect(x + 1, 3, Math.max(1, Math.min(w, wide - x) - 2), 28);
		}

		function redraw() {
			if (!queued) requestAnimationFrame(draw);
			queued = true;
		}

		const shortest = Math.min(data.end, 200);
		function show(a, b) {
			const span = Math.min(data.end, Math.max(shortest, b - a));
			from = Math.min(Math.max(0, (a + b - span) / 2), data.end - span);
			to = from + span;
			redraw();
		}
		const timeAt = (canvas, x, a, b) => {
			const box = canvas.getBoundingClientRect();
			return a + ((x - box.left - margin) / Math.max(1, box.width - margin)) * (b - a);
		};
		const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) * factor, at + (to - at) * factor);
		const move = (share) => {
			const by = share * (to - from);
			const d = by < 0 ? Math.max(by, -from) : Math.min(by, data.end - to);
			show(from + d, to + d);
		};

		function goTo(i) {
			if (i < 0 || i >= steps.length) return;
			current = i;
			const s = steps[i], room = Math.max((s.to - s.from) * 0.03, 1);
			show(s.from - room, s.to + room);
			const busy = s.gpu.reduce((sum, slice) => sum + slice.ns, 0);
			const wall = s.host.find((slice) => slice.whole);
			say([label(s), `position ${s.position}`, wall ? `wall time ${time(wall.ns)}` : "",
				busy ? `GPU ${time(busy)} in ${s.gpu.reduce((n, slice) => n + slice.count, 0)} slices` : "no GPU times"]);
		}
		const say = (parts) => { pointed.textContent = parts.filter(Boolean).join(" · "); };
		const neighbour = (by) => goTo(current >= 0 ? current + by : Math.max(0, firstStep(from) - (by < 0 ? 1 : 0)));

		const actions = {
			in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.4), right: () => move(0.4),
			all: () => { current = -1; pointed.textContent = hint; show(0, data.end); },
			next: () => neighbour(1), previous: () => neighbour(-1),
		};
		all("[data-do]", box).forEach((button) => button.addEventListener("click", actions[button.dataset.do]));
		const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", n: "next", p: "previous" };
		view.addEventListener("keydown", (e) => {
			if (e.ctrlKey || e.metaKey || e.altKey || !(e.key in keys)) return;
			actions[keys[e.key]]();
			e.preventDefault();
		});
		view.addEventListener("wheel", (e) => {
			if (e.ctrlKey || e.metaKey) zoom(1.0015 ** e.deltaY, timeAt(view, e.clientX, from, to));
			else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) move((e.deltaX || e.deltaY) / view.clientWidth);
			else return;
			e.preventDefault();
		}, { passive: false });
		view.addEventListener("dblclick", (e) => zoom(0.3, timeAt(view, e.clientX, from, to)));

		// describe says what is at a point of the view.
		function describe(e) {
			const at = timeAt(view, e.clientX, from, to), y = e.clientY - view.getBoundingClientRect().top;
			const row = Math.floor((y - axisHeight) / (rowHeight + gap));
			const slack = (2 * (to - from)) / view.clientWidth;
			let best = null, of = null;
			visible((slice, r, step) => {
				if (r !== row || slice.from - slack > at || slice.to + slack < at) return;
				const exact = slice.from <= at && slice.to >= at;
				if (!best || exact || slice.to - slice.from < best.to - best.from) [best, of] = [slice, step];
			});
			if (!best) return;
			const [what, kernel] = name(best);
			say([label(of) + `, position ${of.position}`, best.count > 1 ? `${best.count} dispatches, mostly ${what}` : what,
				kernel, time(best.ns), `from ${timer(best.ns / 10 + 1, best.from)(best.from)}`]);
		}

		const fingers = new Map();
		view.addEventListener("pointerdown", (e) => {
			fingers.set(e.pointerId, e.clientX);
			view.setPointerCapture(e.pointerId);
			describe(e);
		});
		view.addEventListener("pointermove", (e) => {
			if (!fingers.has(e.pointerId)) return describe(e);
			const before = [...fingers.values()];
			const last = fingers.get(e.pointerId);
			fingers.set(e.pointerId, e.clientX);
			if (fingers.size === 1) return move((last - e.clientX) / Math.max(1, view.clientWidth - margin));
			const now = [...fingers.values()], apart = (list) => Math.max(8, Math.abs(list[0] - list[1]));
			zoom(apart(before) / apart(now), timeAt(view, (now[0] + now[1]) / 2, from, to));
		});
		for (const kind of ["pointerup", "pointercancel"]) {
			view.addEventListener(kind, (e) => fingers.delete(e.pointerId));
		}

		let anchor = null;
		overview.addEventListener("pointerdown", (e) => {
			overview.setPointerCapture(e.pointerId);
			anchor = timeAt(overview, e.clientX, 0, data.end);
			const half = (to - from) / 2;
			show(anchor - half, anchor + half);
		});
		overview.addEventListener("pointermove", (e) => {
			if (anchor === null) return;
			const at = timeAt(overview, e.clientX, 0, data.end);
			if (Math.abs(at - anchor) > data.end / 100) show(Math.min(at, anchor), Math.max(at, anchor));
		});
		for (const kind of ["pointerup", "pointercancel"]) {
			overview.addEventListener(kind, () => { anchor = null; });
		}

		box.hidden = false;
		readColors();
		new ResizeObserver(redraw).observe(box);
		matchMedia("print").addEventListener("change", () => { readColors(); draw(); }); // paper is light
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColors(); redraw(); });
		// The overview shows the whole run, so the view begins with the last two steps.
		const last = steps.slice(-2);
		show(last.length ? last[0].from : 0, last.length ? Math.max(...last.map((s) => s.to)) : data.end);
	}

	const text = document.getElementById("timeline-data");
	if (text) {
		const data = JSON.parse(text.textContent);
		data.end = Math.max(1, data.end);
		setUpTimeline(document.querySelector(".timeline"), data);
	}
})();
