"""The item map of the released code of the sampler paper gives the AUCs that its authors' notebook prints."""

from __future__ import annotations

import numpy as np
import pytest

from realdata import folder_of
from truerank.core.ids import Ids
from truerank.datasets.split import restrict
from truerank.models import Model, Side
from truerank.models.baselines import Popularity, Random
from truerank_research.papers.reliability.data import kuairec_data
from truerank_research.papers.reliability.released import known_ids, released_scores

pytestmark = pytest.mark.realdata
PRINTED = {19: 0.0, 21: 0.2768, 23: 0.0143, 24: 0.0517}  # of LightFM and of LightFM-F


@pytest.mark.parametrize("model", [Popularity(), Random()], ids=lambda model: model.name)
def test_printed_aucs(model: Model) -> None:
    """Whatever the model is: these users' one negative is an item whose id is no user's."""
    data = kuairec_data(folder_of("kuairec"))
    world = restrict(data.world, users=Ids.of(list(PRINTED)), items=data.world.items)
    assert (known_ids(data.train)[0].locate(world.items) < 0).sum() == 970
    scores = released_scores(model, world, data.train, Side(), seed=0)
    items = world.items.values.to_list()
    for row, (user, printed) in enumerate(PRINTED.items()):
        liked = [items[item] for item in world.item[(world.user == row) & (world.label == 1)]]
        others = np.fromiter(set(items) - set(liked), dtype=np.int64)
        (negative,) = np.random.RandomState(int(f"{user}42")).choice(others, size=1, replace=False)
        score = dict(zip(items, scores[row], strict=True))
        auc = np.mean([score[item] > score[negative] for item in liked])
        assert round(float(auc), 4) == printed
