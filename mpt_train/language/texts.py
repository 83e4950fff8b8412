"""Texts of a task, on which the tokenizer of a tiny model is trained."""

from __future__ import annotations

import numpy as np

from mpt_train.language.answers import bid_options, option_text
from mpt_train.language.config import LanguageConfig
from mpt_train.language.game import TextVectorGame
from wrappers.rng import hash4

_WORLDS, _TURNS = 6, 12


def sample_texts(game: TextVectorGame, config: LanguageConfig) -> list[str]:
    """What agents read in a few episodes of random play, and every answer there is.

    Depends on the task and the form of answers only, so that a run that is loaded again gets the
    same tokenizer.

    Args:
        game: of the task; its worlds stay as they are.
        config: the form of answers, and whether there are profiles.
    """
    play = game.spawn(_WORLDS)
    play.reset(np.arange(_WORLDS))
    texts = [play.profile(agent) for agent in range(play.num_agents)] if config.profile else []
    for turn in range(min(_TURNS, play.max_turns)):
        rows = np.flatnonzero(play.active).tolist()
        if not rows:
            break
        bids = np.zeros((_WORLDS, play.num_agents), np.int64)
        for row in rows:
            texts += [play.prompt(row, agent) for agent in range(play.num_agents)]
            bids[row, hash4(play.keys[row], turn, 0, 0) % play.num_agents] = 1
        winners = play.auction(bids).winners
        actions = np.zeros(_WORLDS, np.int64)
        masks = play.action_masks()
        for row in rows:
            if winners[row] >= 0:
                texts.append(play.prompt(row, int(winners[row])))
                legal = np.flatnonzero(masks[winners[row]][row])
                actions[row] = legal[hash4(play.keys[row], turn, 0, 1) % len(legal)]
        play.act(actions)
    play.close()
    answers = bid_options([float(x) for x in game.bid_levels], config.answers)
    for names in game.action_names:
        answers += [option_text(name, config.answers) for name in names]
    # Answers are rare in what is read, and should be few tokens.
    return texts + answers * 20
